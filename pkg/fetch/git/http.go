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

	"github.com/go-git/go-git/v5/plumbing/format/pktline"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
)

const refsPath = "/info/refs"

// httpLink speaks the smart protocol over https: a request for the refs, another for the pack.
type httpLink struct {
	network     *outbound.Network
	origin      *url.URL
	credentials fetch.Credentials
	limits      wireLimits
	base        *url.URL // of the repository, after redirects
}

func (h *httpLink) refs(ctx context.Context) (io.ReadCloser, *url.URL, error) {
	at := *h.origin
	at.Path, at.RawPath, at.RawQuery = at.Path+refsPath, "", "service="+service
	answer, err := h.ask(ctx, outbound.Request{
		Method: http.MethodGet, URL: &at, Limit: h.limits.refs,
		Header: http.Header{"Accept": {"application/x-" + service + "-advertisement"}},
	})
	if err != nil {
		return nil, nil, err
	}
	base := *answer.URL
	if !strings.HasSuffix(base.Path, refsPath) {
		answer.Body.Close()
		return nil, nil, &fetch.RefusedError{Subject: outbound.Shown(&base), Rule: "it was redirected to a URL that is not a repository"}
	}
	base.Path, base.RawPath, base.RawQuery = strings.TrimSuffix(base.Path, refsPath), "", ""
	h.base = &base
	if err := readServiceLine(answer.Body); err != nil {
		answer.Body.Close()
		return nil, nil, protocolError(&base, err, noRefs)
	}
	return answer.Body, &base, nil
}

var errServiceLine = errors.New("no service line")

// readServiceLine reads the lines before the refs in http: "# service=…" and a flush.
func readServiceLine(from io.Reader) error {
	lines := pktline.NewScanner(from) // reads no further than necessary
	if !lines.Scan() || !bytes.HasPrefix(lines.Bytes(), []byte("# service="+service)) {
		return errors.Join(errServiceLine, lines.Err())
	}
	if !lines.Scan() || len(lines.Bytes()) != 0 {
		return errors.Join(errServiceLine, lines.Err())
	}
	return nil
}

func (h *httpLink) upload(ctx context.Context, request []byte) (io.ReadCloser, error) {
	at := *h.base
	at.Path += "/" + service
	answer, err := h.ask(ctx, outbound.Request{
		Method: http.MethodPost, URL: &at, Body: request, Limit: h.limits.pack,
		Header: http.Header{
			"Accept":       {"application/x-" + service + "-result"},
			"Content-Type": {"application/x-" + service + "-request"},
		},
	})
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

func (h *httpLink) close() {}

func (h *httpLink) ask(ctx context.Context, request outbound.Request) (*outbound.Answer, error) {
	request.Origin, request.Credentials = h.origin, h.credentials
	answer, err := h.network.Do(ctx, request)
	if err != nil {
		return nil, err
	}
	if err := checkAnswer(answer, request.Header.Get("Accept")); err != nil {
		answer.Body.Close()
		return nil, err
	}
	return answer, nil
}

// checkAnswer refuses pages of servers that are no git servers, even with status 200.
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
