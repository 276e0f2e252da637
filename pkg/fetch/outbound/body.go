package outbound

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"
)

// watch ends an exchange that takes too long or pauses too long.
type watch struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	idle   time.Duration
	total  *time.Timer
	pause  *time.Timer
}

func newWatch(parent context.Context, total, idle time.Duration) *watch {
	ctx, cancel := context.WithCancelCause(parent)
	return &watch{
		ctx: ctx, cancel: cancel, idle: idle,
		total: time.AfterFunc(total, func() { cancel(tookTooLong(total)) }),
		pause: time.AfterFunc(idle, func() { cancel(&silentError{text: fmt.Sprintf("no data arrived for %s", idle)}) }),
	}
}

func (w *watch) alive() { w.pause.Reset(w.idle) }

func (w *watch) stop() {
	w.total.Stop()
	w.pause.Stop()
	w.cancel(context.Canceled)
}

func (w *watch) cause(err error) error {
	if reason := context.Cause(w.ctx); reason != nil {
		return reason
	}
	return err
}

type body struct {
	from        io.ReadCloser
	watch       *watch
	visit       *visit
	left, limit int64
	url         *url.URL
}

func (b *body) Read(into []byte) (int, error) {
	if b.left < 0 {
		return 0, b.tooLong()
	}
	if int64(len(into)) > b.left+1 {
		into = into[:b.left+1] // one more byte than allowed shows that it is too long
	}
	count, err := b.from.Read(into)
	b.watch.alive()
	b.left -= int64(count)
	if b.left < 0 {
		return max(count-1, 0), b.tooLong()
	}
	if err == nil {
		return count, nil
	}
	// An end after the connection was closed here does not count: the server then finishes its answer, which can
	// arrive before the connection is closed. A truncated answer would count as a complete one.
	if ended := b.watch.ctx.Err(); ended != nil || !errors.Is(err, io.EOF) {
		return count, unavailable(b.url, b.watch.cause(err))
	}
	return count, io.EOF
}

func (b *body) tooLong() error {
	return refused(b.url, fmt.Sprintf("the answer is larger than %s", Bytes(b.limit)))
}

// Close ends the exchange at any time.
func (b *body) Close() error {
	b.watch.stop()
	err := b.from.Close()
	b.visit.leave()
	return err
}

// Bytes formats a size for operators.
func Bytes(size int64) string {
	switch {
	case size >= 1<<30 && size%(1<<30) == 0:
		return fmt.Sprintf("%d GiB", size>>30)
	case size >= 1<<20 && size%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", size>>20)
	case size >= 1<<10 && size%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", size>>10)
	}
	return fmt.Sprintf("%d bytes", size)
}
