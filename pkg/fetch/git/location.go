package git

import (
	"strings"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
)

// Location is a folder in a repository. Exactly one of Branch, Tag, Commit and Semver is set.
type Location struct {
	Remote                      string
	Branch, Tag, Commit, Semver fetch.Selector
	// Path is the folder, slash-separated, relative; "" is the top.
	Path string
}

// defaultBranch is that of a source which names none.
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
	ref := source.Ref
	if ref == nil {
		ref = &v1.GitRef{Branch: defaultBranch}
	}
	location.Branch, location.Tag = fetch.Selector(ref.Branch), fetch.Selector(ref.Tag)
	location.Commit, location.Semver = fetch.Selector(ref.Commit), fetch.Selector(ref.Semver)
	return location, true
}

// SecretKeys implements fetch.Kind. The key of ssh has the name of Kubernetes' own type of Secret;
// else the one that Flux has counts.
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

// Host implements fetch.Location. It takes the short form of remotes by ssh, user@host:path, too.
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

// IsFixed implements fetch.Location: a commit never names anything else.
func (l Location) IsFixed() bool { return l.Commit != "" }
