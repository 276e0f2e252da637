package git

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/url"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
)

const (
	service = "git-upload-pack"
	// advertisementLimit fits repositories with half a million refs.
	advertisementLimit = 32 << 20
	// peeled marks the commit of the annotated tag in the line before.
	peeled = "^{}"
)

type advertisement struct {
	// base is the URL of the repository, after redirects.
	base         *url.URL
	capabilities map[string]bool
	refs         int
}

type advertised struct {
	name string
	hash plumbing.Hash
}

func advertise(ctx context.Context, from link, visit func(advertised)) (*advertisement, error) {
	lines, base, err := from.refs(ctx)
	if err != nil {
		return nil, err
	}
	defer lines.Close()
	found := &advertisement{base: base, capabilities: map[string]bool{}}
	return found, found.read(lines, visit)
}

// read scans pkt-lines: one per ref, the first with the server's capabilities, then a flush.
func (a *advertisement) read(from io.Reader, visit func(advertised)) error {
	lines := pktline.NewScanner(from)
	for first := true; lines.Scan(); first = false {
		line := lines.Bytes()
		if len(line) == 0 {
			return a.check()
		}
		if first {
			line = a.readCapabilities(line)
		}
		if err := a.ref(line, visit); err != nil {
			return err
		}
	}
	return a.broken(lines.Err())
}

func (a *advertisement) readCapabilities(line []byte) []byte {
	line, list, _ := bytes.Cut(line, []byte{0})
	for word := range strings.FieldsSeq(string(list)) {
		a.capabilities[word] = true
	}
	return line
}

func (a *advertisement) ref(line []byte, visit func(advertised)) error {
	hash, name, ok := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
	if hash == "shallow" {
		return nil
	}
	if !ok || !isCommit(hash) {
		return a.broken(nil)
	}
	if name == "capabilities"+peeled {
		return nil
	}
	a.refs++
	visit(advertised{name: name, hash: plumbing.NewHash(hash)})
	return nil
}

// isCommit is a fast commitPattern, for half a million lines.
func isCommit(hash string) bool {
	return len(hash) == 2*len(plumbing.Hash{}) && strings.Trim(hash, "0123456789abcdef") == ""
}

func (a *advertisement) check() error {
	for capability := range a.capabilities {
		format, ok := strings.CutPrefix(capability, "object-format=")
		if ok && format != "sha1" {
			return &fetch.RefusedError{Subject: outbound.Shown(a.base), Rule: "its object format is not sha1, and no other format is supported"}
		}
	}
	return nil
}

func (a *advertisement) broken(err error) error {
	return protocolError(a.base, err, noRefs)
}

const noRefs = "the answer is not a list of refs"

func protocolError(at *url.URL, err error, rule string) error {
	if ours(err) {
		return err
	}
	return &fetch.UnavailableError{Subject: outbound.Shown(at), Err: errors.New(rule)}
}

// link is a connection to a repository, for one Resolve or Fetch.
type link interface {
	// refs opens the list of refs, and returns the repository's URL after redirects.
	refs(ctx context.Context) (io.ReadCloser, *url.URL, error)
	// upload sends a request for objects and opens the answer. Call refs first.
	upload(ctx context.Context, request []byte) (io.ReadCloser, error)
	// close ends the link; it can be called at any time.
	close()
}

type wireLimits struct{ refs, pack int64 }

func (s *Source) link(location Location, credentials fetch.Credentials) (link, error) {
	if isSSH(location.Remote) {
		return newSSHLink(s.network, s.wire, location, credentials)
	}
	origin, err := s.remote(location.Remote)
	if err != nil {
		return nil, err
	}
	return &httpLink{network: s.network, origin: origin, credentials: credentials, limits: s.wire}, nil
}

// remote reads a repository's URL, for https requests and for errors.
func (s *Source) remote(text string) (*url.URL, error) {
	if isSSH(text) {
		at, err := parseSSH(text)
		if err != nil {
			return nil, err
		}
		return at.url, nil
	}
	at, err := s.network.ParseURL(text)
	if err != nil {
		return nil, err
	}
	at.Path, at.RawPath = strings.TrimRight(at.Path, "/"), ""
	return at, nil
}

func (s *Source) shown(location Location) string {
	at, err := s.remote(location.Remote)
	if err != nil {
		return "the repository"
	}
	return outbound.Shown(at)
}
