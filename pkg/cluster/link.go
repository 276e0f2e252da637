package cluster

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// Deadlines and limits of calls to user clusters; every one of them is a tenant's to try.
const (
	dialTimeout    = 5 * time.Second
	tlsTimeout     = 5 * time.Second
	headerTimeout  = 10 * time.Second
	requestTimeout = 30 * time.Second
	// idlePing finds a connection whose other side went away without a word.
	idlePing    = 10 * time.Second
	pingTimeout = 5 * time.Second
	// longestRetryAfter is the most that an API server can make client-go wait between two tries.
	longestRetryAfter = 5

	answerLimit  = 32 << 20
	openAPILimit = 64 << 20
)

const userAgent = "trellis"

// link is the one HTTP client of a kubeconfig. While it is broken or closed, every call but a probe fails at once.
type link struct {
	fingerprint [sha256.Size]byte
	config      *rest.Config
	client      *http.Client
	transport   *http.Transport
	// blocked is why calls fail at once; nil when they go out.
	blocked atomic.Pointer[NotConnectedError]
	closed  atomic.Bool
	// failed hears of every transport failure.
	failed func(*link, error)
}

// newLink makes a client from a checked kubeconfig. The transport is made here and not by client-go, which keeps each one
// for the life of the process.
func newLink(checked *rest.Config, failed func(*link, error)) (*link, error) {
	security, err := rest.TLSConfigFor(checked)
	if err != nil {
		return nil, &KubeconfigError{"", "holds certificates that can't be used"}
	}
	l := &link{failed: failed}
	l.transport = &http.Transport{
		Proxy:                 nil, // not from the environment either
		DialContext:           (&net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}).DialContext,
		TLSClientConfig:       security,
		TLSHandshakeTimeout:   tlsTimeout,
		ResponseHeaderTimeout: headerTimeout,
		IdleConnTimeout:       90 * time.Second,
		MaxIdleConnsPerHost:   4,
		DisableCompression:    true,
		ForceAttemptHTTP2:     true,
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: idlePing, PingTimeout: pingTimeout},
	}
	// The wrappers add the token and the user agent, the certificate is in the transport.
	authenticated, err := rest.HTTPWrappersForConfig(&rest.Config{BearerToken: checked.BearerToken, UserAgent: userAgent}, l.transport)
	if err != nil {
		return nil, fmt.Errorf("preparing the transport: %w", err)
	}
	guarded := &guard{link: l, next: authenticated}
	l.client = &http.Client{Transport: guarded, Timeout: requestTimeout, CheckRedirect: noRedirect}
	l.config = &rest.Config{
		Host: checked.Host, Transport: guarded, Timeout: requestTimeout, QPS: -1, DisableCompression: true,
		UserAgent: userAgent, WarningHandler: rest.NoWarnings{},
	}
	return l, nil
}

// noRedirect hands the redirect itself over as the answer, which no client takes for a good one.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// close makes later calls fail; those under way end as they may, and their connections go with them.
func (l *link) close(cluster, reason, message string) {
	l.closed.Store(true)
	l.blocked.Store(&NotConnectedError{Cluster: cluster, Reason: reason, Message: message})
	l.transport.CloseIdleConnections()
}

type probeKey struct{}

// asProbe marks calls that go out although the link is blocked.
func asProbe(ctx context.Context) context.Context {
	return context.WithValue(ctx, probeKey{}, true)
}

// guard is the outermost part of a link's transport: the circuit, and the limits on answers.
type guard struct {
	link *link
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(request *http.Request) (*http.Response, error) {
	probe := request.Context().Value(probeKey{}) != nil
	if blocked := g.link.blocked.Load(); blocked != nil && !probe {
		return nil, blocked
	}
	response, err := g.next.RoundTrip(request)
	if err != nil {
		if !probe && isTransportFailure(&url.Error{Op: request.Method, URL: "", Err: err}) {
			g.link.failed(g.link, err)
		}
		return nil, err
	}
	limitRetryAfter(response.Header)
	limit := int64(answerLimit)
	if strings.HasPrefix(request.URL.Path, "/openapi") {
		limit = openAPILimit
	}
	response.Body = &limitedBody{body: response.Body, link: g.link, left: limit, limit: limit, path: request.URL.Path}
	return response, nil
}

// limitRetryAfter keeps an API server from making client-go sleep: it takes any integer at its word.
func limitRetryAfter(header http.Header) {
	value := header.Get("Retry-After")
	if value == "" {
		return
	}
	if seconds, err := strconv.Atoi(value); err != nil || seconds > longestRetryAfter {
		header.Set("Retry-After", strconv.Itoa(longestRetryAfter))
	}
}

// limitedBody fails, rather than ends, at the limit: a cut list would look like a short one.
type limitedBody struct {
	body        io.ReadCloser
	link        *link
	left, limit int64
	path        string
}

// Read implements io.Reader.
func (b *limitedBody) Read(buffer []byte) (int, error) {
	if int64(len(buffer)) > b.left+1 {
		buffer = buffer[:b.left+1]
	}
	n, err := b.body.Read(buffer)
	if b.left -= int64(n); b.left < 0 {
		return 0, &AnswerTooLargeError{Path: b.path, Limit: b.limit}
	}
	return n, err
}

// Close implements io.Closer.
func (b *limitedBody) Close() error {
	err := b.body.Close()
	if b.link.closed.Load() {
		b.link.transport.CloseIdleConnections()
	}
	return err
}
