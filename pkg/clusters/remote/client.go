package remote

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// Deadlines of the steps of a call. A server can use all of each.
const (
	dialTimeout    = 5 * time.Second
	tlsTimeout     = 5 * time.Second
	headerTimeout  = 10 * time.Second
	requestTimeout = 30 * time.Second
	// idlePing detects a connection that the other side left silently.
	idlePing    = 10 * time.Second
	pingTimeout = 5 * time.Second
	// longestRetryAfter is the longest wait of client-go between two tries, in seconds.
	longestRetryAfter = 5
	headerLimit       = 64 * kibi
	// queryLimit is more than our own queries need; continue tokens come from the server.
	queryLimit = 16 * kibi
)

const userAgent = "trellis"

// Options of a Client.
type Options struct {
	// Budget is shared by all clients of a process.
	Budget *Budget
	// Heaviest is the largest weight of an answer, in bytes of memory; 0: only the other limits.
	Heaviest int64
	// Permit decides before each call whether to make it; nil: always.
	Permit func(ctx context.Context) error
	// Addresses are those that the host may have.
	Addresses Addresses
	// Fence stops writes once the process no longer leads; may be nil.
	Fence Fence
	// Failed is called for every call without an answer and every misbehaviour, with the call's
	// context, or an empty one for unrequested bytes. It may be called concurrently, and must not
	// block.
	Failed func(ctx context.Context, err error)
}

// Fence decides before each call, and before each piece of one.
type Fence interface {
	// Permit is nil if the call may be made.
	Permit(request *http.Request) error
	// Conn is a connection that sends nothing once the fence is closed.
	Conn(made net.Conn) net.Conn
}

// Client is the HTTP client for an API server. It is safe for concurrent use.
type Client struct {
	// HTTP and Config are for typed clients; Config has no readable credentials.
	HTTP   *http.Client
	Config *rest.Config

	options Options
	// prefix of the paths of all calls.
	prefix    string
	next      http.RoundTripper
	transport *http.Transport
	budget    *Budget
	share     *share
	traffic   *traffic
	closed    atomic.Bool
}

// New makes a client from a configuration with checked host and credentials. It makes its own
// transport: client-go would cache it for the life of the process. No call is made.
func New(checked *rest.Config, options Options) (*Client, error) {
	security, err := rest.TLSConfigFor(checked)
	if err != nil {
		return nil, fmt.Errorf("preparing certificates: %w", err)
	}
	c := &Client{
		options: options, prefix: pathOf(checked.Host), budget: options.Budget, share: options.Budget.share(), traffic: newTraffic(time.Now()),
	}
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second, Control: options.Addresses.check}
	c.transport = &http.Transport{
		Proxy: nil, // not from the environment either
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			connection, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			if options.Fence != nil {
				connection = options.Fence.Conn(connection)
			}
			return &gauge{Conn: connection, client: c}, nil
		},
		TLSClientConfig:        security,
		TLSHandshakeTimeout:    tlsTimeout,
		ResponseHeaderTimeout:  headerTimeout,
		MaxResponseHeaderBytes: headerLimit,
		IdleConnTimeout:        90 * time.Second,
		MaxIdleConnsPerHost:    4,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
		HTTP2: &http.HTTP2Config{
			SendPingTimeout: idlePing, PingTimeout: pingTimeout,
			MaxReceiveBufferPerConnection: connectionBuffer, MaxReceiveBufferPerStream: streamBuffer,
		},
	}
	// The wrappers add token and user agent; the certificate is in the transport.
	c.next, err = rest.HTTPWrappersForConfig(&rest.Config{BearerToken: checked.BearerToken, UserAgent: userAgent}, c.transport)
	if err != nil {
		return nil, fmt.Errorf("preparing the transport: %w", err)
	}
	c.HTTP = &http.Client{Transport: c, Timeout: requestTimeout, CheckRedirect: noRedirect}
	c.Config = &rest.Config{
		Host: checked.Host, Transport: c, Timeout: requestTimeout, QPS: -1, DisableCompression: true,
		UserAgent: userAgent, WarningHandler: rest.NoWarnings{},
		// Clients that can read protobuf request it.
		ContentConfig: rest.ContentConfig{ContentType: jsonType},
	}
	return c, nil
}

// Close closes idle connections, and others when their calls end.
func (c *Client) Close() {
	c.closed.Store(true)
	c.transport.CloseIdleConnections()
}

// noRedirect returns the redirect itself, which clients treat as a failure.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// RoundTrip implements http.RoundTripper.
func (c *Client) RoundTrip(request *http.Request) (*http.Response, error) {
	if c.options.Permit != nil {
		if err := c.options.Permit(request.Context()); err != nil {
			return nil, err
		}
	}
	if c.options.Fence != nil {
		if err := c.options.Fence.Permit(request); err != nil {
			return nil, err
		}
	}
	if isStream(request) && !isWatched(request) {
		return nil, &UnsupportedError{Asked: asked(request)}
	}
	if beyond := ledgerOf(request.Context()).charge(1, 0, 0); beyond != "" {
		return nil, c.refuse(request, beyond)
	}
	if len(request.URL.RawQuery) > queryLimit {
		return nil, c.refuse(request, fmt.Sprintf("it continues a list with a token of more than %d KiB", queryLimit>>10))
	}
	c.traffic.called()
	span := beginCall(request, serverRemote, c.prefix)
	ctx, cancel := context.WithCancelCause(request.Context())
	request = request.WithContext(ctx)
	if request.Method == http.MethodDelete {
		// The answer is the whole object or a Status, and only metadata is scanned in protobuf.
		request.Header = request.Header.Clone() // the caller's own header does not change
		request.Header.Set("Accept", jsonType)
	}
	response, err := c.next.RoundTrip(request)
	count(request, response)
	endCall(span, response)
	if err != nil {
		cancel(nil)
		c.report(request.Context(), err)
		return nil, err
	}
	limitRetryAfter(response.Header)
	if isWatched(request) && response.StatusCode == http.StatusOK {
		response.Body = stream{response.Body, cancel} // Watch bounds it
		return response, nil
	}
	if wrong := c.wrap(response, request, cancel); wrong != "" {
		cancel(nil)
		_ = response.Body.Close()
		return nil, c.refuse(request, wrong)
	}
	return response, nil
}

func (c *Client) refuse(request *http.Request, wrong string) error {
	misbehaves := &MisbehavesError{Asked: asked(request), Did: wrong}
	c.report(request.Context(), misbehaves)
	return misbehaves
}

func (c *Client) report(ctx context.Context, err error) {
	if c.options.Failed != nil {
		c.options.Failed(ctx, err)
	}
}

const (
	jsonType     = "application/json"
	protobufType = "application/vnd.kubernetes.protobuf"
)

// wrap makes a scanner for the content type check the body, or returns the problem of the type.
func (c *Client) wrap(response *http.Response, request *http.Request, cancel context.CancelCauseFunc) (wrong string) {
	most, good := limitsOf(request), response.StatusCode/100 == 2
	if !good {
		most = failureLimits
	}
	wrapped := c.newBody(response, request, cancel, most)
	// client-go also uses only the first header.
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	switch {
	case response.Header.Get("Content-Type") == "", err == nil && kind == jsonType:
		wrapped.check = &scanner{limits: most}
	case err == nil && kind == protobufType:
		wrapped.check = newWireScanner(most)
	case good && response.ContentLength != 0:
		wrapped.timer.Stop()
		return "the answer is neither JSON nor protobuf"
	default:
		response.Header.Set("Content-Type", "text/plain")
		wrapped.check, wrapped.inner = plain{}, cutBody{io.LimitReader(response.Body, plainLimit), response.Body}
	}
	response.Body = wrapped
	return ""
}

func asked(request *http.Request) string {
	path := request.URL.Path
	return request.Method + " " + path[:min(len(path), 300)]
}

// isStream says whether a request requests an endless answer.
func isStream(request *http.Request) bool {
	query := request.URL.RawQuery
	return strings.Contains(query, "watch=") || strings.Contains(query, "follow=") || request.Header.Get("Upgrade") != ""
}

// limitRetryAfter bounds how long an API server makes client-go sleep, which accepts any integer.
func limitRetryAfter(header http.Header) {
	value := header.Get("Retry-After")
	if value == "" {
		return
	}
	if seconds, err := strconv.Atoi(value); err != nil || seconds > longestRetryAfter {
		header.Set("Retry-After", strconv.Itoa(longestRetryAfter))
	}
}
