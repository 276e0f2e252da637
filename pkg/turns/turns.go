// Package turns lets few work at a time, and one owner of much work no more than others.
package turns

import (
	"context"
	"slices"
	"sync"
)

// Turns are few at a time. Of those who wait, the owner that has the fewest turns is next, and of one owner who came first.
type Turns struct {
	// Most is how many turns there are at a time, Each how many of one owner; 0: any number.
	Most, Each int

	mutex sync.Mutex
	all   []*turn // who has a turn or waits, as they came
}

type turn struct {
	owner   string
	begun   chan struct{}
	isBegun bool
}

// Take waits for a turn of an owner, which lasts until end is called. An error is the cause of the context's end.
func (t *Turns) Take(ctx context.Context, owner string) (end func(), err error) {
	mine := &turn{owner: owner, begun: make(chan struct{})}
	end = func() {
		t.change(func() { t.all = slices.DeleteFunc(t.all, func(one *turn) bool { return one == mine }) })
	}
	t.change(func() { t.all = append(t.all, mine) })
	select {
	case <-mine.begun:
		return end, nil
	case <-ctx.Done():
		end()
		return nil, context.Cause(ctx)
	}
}

// change who is there, and begin the turns that are free by then.
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
			if mayBegin && (next == nil || has[one.owner] < has[next.owner]) {
				next = one
			}
		}
		if next == nil {
			return
		}
		has[next.owner]++
		next.isBegun = true
		close(next.begun)
	}
}
