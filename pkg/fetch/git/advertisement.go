package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
)

const (
	service  = "git-upload-pack"
	refsPath = "/info/refs"
	// advertisementLimit fits repositories with half a million refs.
	advertisementLimit = 32 << 20
	// peeled marks the line that gives the commit behind the annotated tag of the line before.
	peeled = "^{}"
)

// advertisement is what a server says about itself before its refs.
type advertisement struct {
	// base is the URL of the repository, after redirects.
	base         *url.URL
	capabilities map[string]bool
	refs         int
}

// advertised is one line of the list of refs.
type advertised struct {
	name string
	hash plumbing.Hash
}

// ask sends a request to the repository with the reference's credentials.
func (s *Source) ask(ctx context.Context, reference fetch.Reference, request outbound.Request) (*outbound.Answer, error) {
	origin, err := s.remote(reference.Git.Remote)
	if err != nil {
		return nil, err
	}
	request.Origin, request.Credentials = origin, reference.Credentials
	answer, err := s.network.Do(ctx, request)
	if err != nil {
		return nil, err
	}
	if err := checkAnswer(answer, request.Header.Get("Accept")); err != nil {
		answer.Body.Close()
		return nil, err
	}
	return answer, nil
}

// checkAnswer: a server that is no git server answers with pages, some of them with status 200.
func checkAnswer(answer *outbound.Answer, expected string) error {
	subject := outbound.Shown(answer.URL)
	repository := strings.TrimSuffix(subject, refsPath)
	switch {
	case answer.Status == http.StatusNotFound || answer.Status == http.StatusGone:
		return &fetch.NotFoundError{What: fmt.Sprintf("repository %q", repository)}
	case answer.Status != http.StatusOK:
		return &fetch.UnavailableError{Subject: subject, Err: fmt.Errorf("the server answers with status %d", answer.Status)}
	}
	kind, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if err != nil || kind != expected {
		return &fetch.RefusedError{Subject: subject, Rule: fmt.Sprintf(
			"the answer is %q and not a git repository's (a login page, or a server without the smart protocol?)", kind)}
	}
	return nil
}

// advertise reads the refs of a repository and hands each to visit.
func (s *Source) advertise(
	ctx context.Context, reference fetch.Reference, visit func(advertised),
) (*advertisement, error) {
	origin, err := s.remote(reference.Git.Remote)
	if err != nil {
		return nil, err
	}
	at := *origin
	at.Path, at.RawPath, at.RawQuery = at.Path+refsPath, "", "service="+service
	answer, err := s.ask(ctx, reference, outbound.Request{
		Method: http.MethodGet, URL: &at, Limit: advertisementLimit,
		Header: http.Header{"Accept": {"application/x-" + service + "-advertisement"}},
	})
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	base := *answer.URL
	if !strings.HasSuffix(base.Path, refsPath) {
		return nil, &fetch.RefusedError{Subject: outbound.Shown(&base), Rule: "it was redirected to what is no repository"}
	}
	base.Path, base.RawPath, base.RawQuery = strings.TrimSuffix(base.Path, refsPath), "", ""
	found := &advertisement{base: &base, capabilities: map[string]bool{}}
	return found, found.read(answer.Body, visit)
}

// read scans pkt-lines: "# service=…", a flush, one line per ref, the first with the server's capabilities.
func (a *advertisement) read(from io.Reader, visit func(advertised)) error {
	lines := pktline.NewScanner(from)
	if !lines.Scan() || !bytes.HasPrefix(lines.Bytes(), []byte("# service="+service)) {
		return a.broken(lines.Err())
	}
	if !lines.Scan() || len(lines.Bytes()) != 0 {
		return a.broken(lines.Err())
	}
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
	if !ok || !commitPattern.MatchString(hash) {
		return a.broken(nil)
	}
	if name == "capabilities"+peeled {
		return nil
	}
	a.refs++
	visit(advertised{name: name, hash: plumbing.NewHash(hash)})
	return nil
}

// check refuses repositories that this package can't read.
func (a *advertisement) check() error {
	for capability := range a.capabilities {
		format, ok := strings.CutPrefix(capability, "object-format=")
		if ok && format != "sha1" {
			return &fetch.RefusedError{Subject: outbound.Shown(a.base), Rule: "its object format is not sha1"}
		}
	}
	return nil
}

// broken tells a connection that breaks off from an answer that is no list of refs.
func (a *advertisement) broken(err error) error {
	return protocolError(a.base, err, "the answer is no list of refs")
}

func protocolError(at *url.URL, err error, rule string) error {
	if ours(err) {
		return err
	}
	return &fetch.UnavailableError{Subject: outbound.Shown(at), Err: errors.New(rule)}
}
