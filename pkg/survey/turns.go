package survey

import (
	"context"
	"sync/atomic"

	"github.com/trellis-addons/trellis/pkg/calls"
)

// allowance is how many bytes lists may keep of what they list. It may be used by many goroutines.
type allowance struct{ left atomic.Int64 }

func newAllowance(bytes int64) *allowance {
	a := &allowance{}
	a.left.Store(bytes)
	return a
}

// take takes so many, and says whether there were as many left.
func (a *allowance) take(bytes int) bool {
	if a.left.Add(-int64(bytes)) >= 0 {
		return true
	}
	a.giveBack(bytes)
	return false
}

func (a *allowance) giveBack(bytes int) { a.left.Add(int64(bytes)) }

// errKeptTooMuch ends lists whose items are too large together.
func errKeptTooMuch() error { return calls.Misbehaves("its lists have more than can be kept of them") }

// turn lets one goroutine at a time go on; waiting for it ends with the context.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t turn) leave() { <-t }
