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

// A body has to send at least leastBytes in each rateWindow; the first two windows count as one.
const (
	leastBytes = 64 * kibi
	rateWindow = 5 * time.Second
)

// check checks an answer while it is read.
type check interface {
	// feed checks the next piece, end the end; both return the problem, or "".
	feed(data []byte) (wrong string)
	end() (wrong string)
	// cost is the number of values and items so far.
	cost() (values, items int)
}

// body is an answer that fails beyond its limits: a truncated list would look like a short one.
type body struct {
	client  *Client
	inner   io.ReadCloser
	request *http.Request
	cancel  context.CancelCauseFunc

	check check
	most  int64
	// bytes so far, and items that were charged.
	bytes int64
	items int
	hold  hold
	// release returns the weight; nil if there is none, or the lease has it.
	release func()
	failed  error

	// watch uses these fields: a timer checks the rate.
	timer   *time.Timer
	arrived atomic.Int64
	last    int64
	// reading is set while waiting for the server, excused after a wait for our own budget.
	reading, excused atomic.Bool
}

func (c *Client) newBody(response *http.Response, request *http.Request, cancel context.CancelCauseFunc, most limits) *body {
	b := &body{
		client: c, inner: response.Body, request: request, cancel: cancel, most: most.bytes, hold: hold{share: c.share},
	}
	b.timer = time.AfterFunc(2*rateWindow, b.watch)
	return b
}

// watch ends an answer that is too slow.
func (b *body) watch() {
	if b.request.Context().Err() != nil { // it ended while this began: nothing would stop the timer again
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
	if err := b.reserve(); err != nil {
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

// reserve waits for memory for the next read. Places include the copies that clients make.
func (b *body) reserve() error {
	waited, err := b.hold.reserve(b.request.Context(), b.bytes+1)
	if waited {
		b.excused.Store(true)
	}
	if err != nil {
		return &BusyError{Asked: asked(b.request)}
	}
	return nil
}

// checkPiece returns the problem of a piece, or "".
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

// finish waits for the weight of a complete answer.
func (b *body) finish() error {
	b.timer.Stop()
	values, _ := b.check.cost()
	release, err := b.client.budget.acquire(b.request.Context(), b.bytes, int64(values))
	if err != nil {
		return &BusyError{Asked: asked(b.request)}
	}
	b.hold.drop()
	if held, ok := b.request.Context().Value(leaseKey{}).(*lease); ok {
		held.add(release)
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

// plain is an answer that no client decodes: a failure that is neither JSON nor protobuf.
type plain struct{}

func (plain) feed([]byte) string { return "" }
func (plain) end() string        { return "" }
func (plain) cost() (int, int)   { return 0, 0 }

// cutBody ends after plainLimit, without an error.
type cutBody struct {
	io.Reader
	io.Closer
}
