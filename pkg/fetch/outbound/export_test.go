package outbound

import (
	"context"
	"io"
	"net/url"
	"time"
)

// Watched reads a server's answer under an idle deadline. The reader gets a channel that is closed after the
// deadline.
func Watched(ctx context.Context, idle time.Duration, from func(hungUp <-chan struct{}) io.Reader) io.ReadCloser {
	watch := newWatch(ctx, time.Hour, idle)
	const limit = 1 << 20
	at := &url.URL{Scheme: "https", Host: "example.com"}
	visit, err := newHosts().enter(ctx, at)
	if err != nil {
		panic(err) // this process has no other user
	}
	return &body{
		visit: visit, url: at,
		from: io.NopCloser(from(watch.ctx.Done())), watch: watch, left: limit, limit: limit,
	}
}

// RetryAfter parses a header.
var RetryAfter = retryAfter

// SetClock replaces the clock, so that a test need not wait.
func (n *Network) SetClock(now func() time.Time) { n.hosts.now = now }
