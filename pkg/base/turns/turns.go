// Package turns lets few callers work at a time, and shares the turns fairly between owners.
package turns

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// Turns limits how many callers work at a time. Of the waiting owners the one with the fewest turns is next, of equal ones
// the one with the fewest since it began to wait, and of one owner the first caller. So an owner with many callers does
// not delay others.
type Turns struct {
	// Most is how many turns there are at a time, Each how many of one owner; 0: any number.
	Most, Each int

	mutex sync.Mutex
	all   []*turn // turns that run or wait, in order of arrival
	rank  int     // the highest of the turns that have begun
}

type turn struct {
	owner   string
	begun   chan struct{}
	isBegun bool
	// rank orders turns of different owners: each has one more than the previous one of its owner that is there.
	rank int
}

// Take waits for a turn of an owner, which lasts until end is called. An error is the cause of the context's end.
func (t *Turns) Take(ctx context.Context, owner string) (end func(), err error) {
	mine := &turn{owner: owner, begun: make(chan struct{})}
	end = func() {
		t.change(func() { t.all = slices.DeleteFunc(t.all, func(one *turn) bool { return one == mine }) })
	}
	t.change(func() {
		mine.rank = t.rank
		for _, one := range t.all {
			if one.owner == owner {
				mine.rank = max(mine.rank, one.rank+1)
			}
		}
		t.all = append(t.all, mine)
	})
	select {
	case <-mine.begun:
		return end, nil
	case <-ctx.Done():
		end()
		return nil, context.Cause(ctx)
	}
}

// change runs what, and begins the turns that are free after that.
func (t *Turns) change(what func()) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	what()
	has, begun := map[string]int{}, 0
	for _, one := range t.all {
		if one.isBegun {
			has[one.owner]++
			begun++
		}
	}
	for ; t.Most == 0 || begun < t.Most; begun++ {
		var next *turn
		for _, one := range t.all {
			mayBegin := !one.isBegun && (t.Each == 0 || has[one.owner] < t.Each)
			if mayBegin && (next == nil || cmp.Or(has[one.owner]-has[next.owner], one.rank-next.rank) < 0) {
				next = one
			}
		}
		if next == nil {
			return
		}
		has[next.owner]++
		t.rank = max(t.rank, next.rank)
		next.isBegun = true
		close(next.begun)
	}
}
