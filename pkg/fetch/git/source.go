package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/turns"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/archive"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
)

// Source is the fetch.Kind of git repositories.
type Source struct {
	network *outbound.Network
	limits  archive.Limits
	wire    wireLimits
	packs   packLimits
}

// New creates a Source whose requests go through the network.
func New(network *outbound.Network) *Source {
	packs := defaultPackLimits
	packs.turns = &turns.Turns{Most: largePacks}
	return &Source{
		network: network, limits: archive.Defaults, packs: packs,
		wire: wireLimits{refs: advertisementLimit, pack: packLimit},
	}
}

// Resolve returns the reference's commit, with one request unless it names a commit.
func (s *Source) Resolve(ctx context.Context, reference fetch.Reference) (fetch.Revision, error) {
	location, ask, err := s.check(reference)
	if err != nil {
		return fetch.Revision{}, err
	}
	if ask.commit != "" {
		return fetch.Revision{Name: ask.commit}, nil
	}
	ctx, cancel := s.network.Operation(ctx)
	defer cancel()
	link, err := s.link(location, reference.Credentials)
	if err != nil {
		return fetch.Revision{}, err
	}
	defer link.close()
	choice := choice{wanted: ask}
	found, err := advertise(ctx, link, choice.visit)
	if err != nil {
		return fetch.Revision{}, err
	}
	if choice.commit == "" {
		return fetch.Revision{}, s.missing(location, ask.text, found)
	}
	return fetch.Revision{Name: choice.commit}, nil
}

// check refuses a reference before anything is sent.
func (s *Source) check(reference fetch.Reference) (Location, wanted, error) {
	location, ok := reference.Location.(Location)
	if !ok {
		return Location{}, wanted{}, errors.New("not a git reference")
	}
	if _, err := s.remote(location.Remote); err != nil {
		return Location{}, wanted{}, err
	}
	if _, err := archive.CleanPath(location.Path); err != nil {
		return Location{}, wanted{}, err
	}
	ask, err := want(location)
	return location, ask, err
}

func (s *Source) missing(location Location, what string, found *advertisement) error {
	missing := &fetch.NotFoundError{What: fmt.Sprintf("%s in %s", what, s.shown(location))}
	if found.refs == 0 {
		missing.Mend = "the repository is empty"
	}
	return missing
}

type choice struct {
	wanted
	commit  string
	version *semver.Version
	chosen  string // the tag whose peeled line may follow
}

func (c *choice) visit(ref advertised) {
	if name, ok := strings.CutSuffix(ref.name, peeled); ok {
		if c.chosen != "" && name == "refs/tags/"+c.chosen {
			c.commit = ref.hash.String()
		}
		return
	}
	switch tag, isTag := strings.CutPrefix(ref.name, "refs/tags/"); {
	case c.branch != "":
		if ref.name == "refs/heads/"+c.branch {
			c.commit = ref.hash.String()
		}
	case isTag && c.wantsTag(tag):
		c.chosen, c.commit = tag, ref.hash.String()
	}
}

// wantsTag accepts the tag of that name, or a tag in the range that is newer than the previous ones. Tags that differ
// only in "v" or build metadata are one version; the first of the sorted refs wins.
func (c *choice) wantsTag(tag string) bool {
	if c.versions == nil {
		return tag == c.tag
	}
	version, err := semver.StrictNewVersion(strings.TrimPrefix(tag, "v"))
	if err != nil || !c.versions.Check(version) || c.version != nil && !version.GreaterThan(c.version) {
		return false
	}
	c.version = version
	return true
}

func ours(err error) bool {
	_, refused := errors.AsType[*fetch.RefusedError](err)
	_, missing := errors.AsType[*fetch.NotFoundError](err)
	_, unauthorized := errors.AsType[*fetch.UnauthorizedError](err)
	_, unavailable := errors.AsType[*fetch.UnavailableError](err)
	return refused || missing || unauthorized || unavailable
}

// Location is a folder in a repository. Exactly one of Branch, Tag, Commit and Semver is set.
type Location struct {
	Remote                      string
	Branch, Tag, Commit, Semver fetch.Selector
	// Path is the folder, slash-separated, relative; "" is the top.
	Path string
}

const defaultBranch = "main"

// Name implements fetch.Kind.
func (*Source) Name() string { return "git" }

// Locate implements fetch.Kind.
func (*Source) Locate(kind v1.SourceKind) (Location, bool) {
	source, ok := kind.(*v1.GitSource)
	if !ok {
		return Location{}, false
	}
	location := Location{Remote: string(source.Remote), Path: source.Path}
	ref := cmp.Or(source.Ref, &v1.GitRef{Branch: defaultBranch})
	location.Branch, location.Tag = fetch.Selector(ref.Branch), fetch.Selector(ref.Tag)
	location.Commit, location.Semver = fetch.Selector(ref.Commit), fetch.Selector(ref.Semver)
	return location, true
}

// SecretKeys implements fetch.Kind. Kubernetes' name of the ssh key takes precedence over Flux's.
func (*Source) SecretKeys() []fetch.SecretKey {
	return append(fetch.LoginKeys(),
		fetch.SecretKey{Name: "ssh-privatekey", Read: func(into *fetch.Credentials, content []byte) { into.PrivateKey = content }},
		fetch.SecretKey{Name: "identity", Read: func(into *fetch.Credentials, content []byte) {
			if len(into.PrivateKey) == 0 {
				into.PrivateKey = content
			}
		}},
		fetch.SecretKey{Name: "known_hosts", Public: true, Read: func(into *fetch.Credentials, content []byte) {
			into.KnownHosts = content
		}},
	)
}

// Host implements fetch.Location, also for the short form user@host:path.
func (l Location) Host() string {
	if strings.Contains(l.Remote, "://") {
		return outbound.HostOf(l.Remote)
	}
	_, rest, _ := strings.Cut(l.Remote, "@")
	host, _, _ := strings.Cut(rest, ":")
	return host
}

// Mirrored implements fetch.Location.
func (l Location) Mirrored(mirrors fetch.Mirrors) (fetch.Location, bool) {
	remote, changed := mirrors.URL(l.Remote)
	l.Remote = remote
	return l, changed
}

// IsFixed implements fetch.Location: a commit never changes.
func (l Location) IsFixed() bool { return l.Commit != "" }
