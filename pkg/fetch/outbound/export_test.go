package outbound

import (
	"context"
	"io"
	"net/url"
	"time"
)

// Watched reads what a server sends under an idle deadline. The reader is handed what ends once the
// deadline passed.
func Watched(ctx context.Context, idle time.Duration, from func(hungUp <-chan struct{}) io.Reader) io.ReadCloser {
	watch := newWatch(ctx, time.Hour, idle)
	const limit = 1 << 20
	at := &url.URL{Scheme: "https", Host: "example.com"}
	visit, err := newHosts().enter(ctx, at)
	if err != nil {
		panic(err) // nobody else is there
	}
	return &body{
		visit: visit, url: at,
		from: io.NopCloser(from(watch.ctx.Done())), watch: watch, left: limit, limit: limit,
	}
}

// RetryAfter is how a header is read.
var RetryAfter = retryAfter

// SetClock lets a test wait without waiting.
func (n *Network) SetClock(now func() time.Time) { n.hosts.now = now }
