package outbound

import (
	"context"
	"io"
	"net/url"
	"time"
)

// Watched reads what a server sends under an idle deadline. The reader is handed what ends once the deadline passed.
func Watched(ctx context.Context, idle time.Duration, from func(hungUp <-chan struct{}) io.Reader) io.ReadCloser {
	watch := newWatch(ctx, time.Hour, idle)
	const limit = 1 << 20
	return &body{
		from: io.NopCloser(from(watch.ctx.Done())), watch: watch, left: limit, limit: limit,
		url: &url.URL{Scheme: "https", Host: "example.com"},
	}
}
