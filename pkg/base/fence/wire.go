package fence

import (
	"context"
	"net"
	"net/http"
)

// Transport refuses calls that write once the fence has fallen.
func (f *Fence) Transport(next http.RoundTripper) http.RoundTripper {
	if f == nil {
		return next
	}
	return &transport{fence: f, next: next}
}

type transport struct {
	fence *Fence
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := t.fence.Permit(request); err != nil {
		return nil, err
	}
	return t.next.RoundTrip(request)
}

// WrappedRoundTripper lets client-go find the wrapped transport.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// Permit returns an error for a call that writes, once the fence has fallen.
func (f *Fence) Permit(request *http.Request) error {
	switch request.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, "":
		return nil
	}
	return f.Holds()
}

// Dialer makes connections.
type Dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// Dial is a dialer whose connections send nothing once the fence has fallen: neither the rest of a call that was
// begun, nor a call that was checked before the process was stopped.
func (f *Fence) Dial(dial Dialer) Dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		made, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return f.Conn(made), nil
	}
}

// Conn is a connection that sends nothing once the fence has fallen.
func (f *Fence) Conn(made net.Conn) net.Conn {
	if f == nil {
		return made
	}
	return &conn{Conn: made, fence: f}
}

type conn struct {
	net.Conn
	fence *Fence
}

// Write implements io.Writer.
func (c *conn) Write(data []byte) (int, error) {
	if err := c.fence.Holds(); err != nil {
		return 0, err
	}
	return c.Conn.Write(data)
}
