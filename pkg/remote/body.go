package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// A body has to come at a least rate: leastBytes in each rateWindow, the first two of which count as one.
const (
	leastBytes = 64 * kibi
	rateWindow = 5 * time.Second
)

// check looks at an answer as it comes.
type check interface {
	// feed takes the next piece and end the end; they say what is wrong, or "".
	feed(data []byte) (wrong string)
	end() (wrong string)
	// cost is how many values and items there were so far.
	cost() (values, items int)
}

// body is an answer that fails, rather than ends, beyond its limits: a cut list would look like a short one.
type body struct {
	client  *Client
	inner   io.ReadCloser
	request *http.Request
	cancel  context.CancelCauseFunc

	check check
	most  int64
	// bytes, and items that were charged.
	bytes int64
	items int
	hold  hold
	// release gives the weight back; nil: there is none, or the lease has it.
	release func()
	// failed is what every later Read says.
	failed error

	// Of the watch over its rate: a timer of its own looks at them.
	timer   *time.Timer
	arrived atomic.Int64
	last    int64
	// reading is set while the server is waited for, excused after our own budget was.
	reading, excused atomic.Bool
}

// newBody wraps the body of an answer.
func (c *Client) newBody(response *http.Response, request *http.Request, cancel context.CancelCauseFunc, most limits) *body {
	b := &body{
		client: c, inner: response.Body, request: request, cancel: cancel, most: most.bytes, hold: hold{share: c.share},
	}
	b.timer = time.AfterFunc(2*rateWindow, b.watch)
	return b
}

// watch ends an answer that drips.
func (b *body) watch() {
	if b.request.Context().Err() != nil { // it ended while this began: nobody would stop the timer again
		return
	}
	arrived := b.arrived.Load()
	if b.reading.Load() && !b.excused.Swap(false) && arrived-b.last < leastBytes {
		b.cancel(&TooSlowError{Asked: asked(b.request)})
		return
	}
	b.last = arrived
	b.timer.Reset(rateWindow)
}

func (b *body) Read(buffer []byte) (int, error) {
	if b.failed != nil {
		return 0, b.failed
	}
	if int64(len(buffer)) > b.most-b.bytes+1 {
		buffer = buffer[:b.most-b.bytes+1]
	}
	if err := b.room(); err != nil {
		return 0, b.fail(err)
	}
	b.reading.Store(true)
	n, err := b.inner.Read(buffer)
	b.reading.Store(false)
	b.arrived.Add(int64(n))
	b.bytes += int64(n)
	if wrong := b.checkPiece(buffer[:n], err); wrong != "" {
		return 0, b.fail(&MisbehavesError{Asked: asked(b.request), Did: wrong})
	}
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, io.EOF):
		if failed := b.finish(); failed != nil {
			return 0, b.fail(failed)
		}
		b.failed = io.EOF
		return n, io.EOF
	}
	if slow, ok := errors.AsType[*TooSlowError](context.Cause(b.request.Context())); ok { // our own watch, not the transport
		err = slow
	}
	return 0, b.fail(err)
}

// room waits until the process may hold what is read next. The places hold what clients copy an answer to, too.
func (b *body) room() error {
	waited, err := b.hold.room(b.request.Context(), b.bytes+1)
	if waited {
		b.excused.Store(true)
	}
	if err != nil {
		return &BusyError{Asked: asked(b.request)}
	}
	return nil
}

// checkPiece says what is wrong with a piece; "": nothing.
func (b *body) checkPiece(data []byte, err error) (wrong string) {
	if b.bytes > b.most {
		return fmt.Sprintf("the answer has more than %d KiB", b.most>>10)
	}
	if b.client.traffic.read(len(data), time.Now()) {
		return fmt.Sprintf("all answers together have more than %d MiB in %s", windowBytes>>20, window)
	}
	if wrong := b.check.feed(data); wrong != "" {
		return wrong
	}
	if errors.Is(err, io.EOF) && b.bytes > 0 {
		if wrong := b.check.end(); wrong != "" {
			return wrong
		}
	}
	values, items := b.check.cost()
	if most := b.client.options.Heaviest; most > 0 && weigh(b.bytes, int64(values)) > most {
		return fmt.Sprintf("the answer takes more than %d MiB to read", most>>20)
	}
	more := items - b.items
	b.items = items
	return ledgerOf(b.request.Context()).charge(0, more, int64(len(data)))
}

// finish takes the weight of an answer that is there as a whole.
func (b *body) finish() error {
	b.timer.Stop()
	values, _ := b.check.cost()
	release, err := b.client.budget.take(b.request.Context(), b.bytes, int64(values))
	if err != nil {
		return &BusyError{Asked: asked(b.request)}
	}
	b.hold.drop()
	if kept, ok := b.request.Context().Value(leaseKey{}).(*lease); ok {
		kept.keep(release)
		return nil
	}
	b.release = release
	return nil
}

func (b *body) fail(err error) error {
	b.failed = err
	b.giveBack()
	b.cancel(nil)
	if IsMisbehaviour(err) {
		b.client.report(b.request.Context(), err)
	}
	return err
}

// giveBack gives back what is held.
func (b *body) giveBack() {
	b.timer.Stop()
	b.hold.drop()
	if b.release != nil {
		b.release()
	}
}

func (b *body) Close() error {
	b.giveBack()
	err := b.inner.Close() // before the context ends: it waits for the stream, so that the connection is idle
	b.cancel(nil)
	if b.client.closed.Load() {
		b.client.transport.CloseIdleConnections()
	}
	return err
}

// plain is an answer that nobody decodes: one that fails and is neither JSON nor protobuf.
type plain struct{}

func (plain) feed([]byte) string { return "" }
func (plain) end() string        { return "" }
func (plain) cost() (int, int)   { return 0, 0 }

// cutBody ends, rather than fails, after plainLimit.
type cutBody struct {
	io.Reader
	io.Closer
}
