package crash_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/gate"
)

// boundary is a place between two writes: before or after the nth write of one kind.
type boundary struct {
	// write is what is written where, without the subject's name.
	write string
	nth   int
	after bool
}

func (b boundary) String() string {
	side := "before"
	if b.after {
		side = "after"
	}
	return fmt.Sprintf("%s %s #%d", side, b.write, b.nth)
}

// isStatus says whether the write is one of the installation's status. How many of those there are depends on what a pass
// happens to see on its way; all other writes are the same in every run.
func (b boundary) isStatus() bool { return strings.HasSuffix(b.write, "/status") }

// watcher sees every write of a subject's controller, on both sides, and kills the controller at a boundary.
type watcher struct {
	subject *subject
	doom    *boundary

	mutex           sync.Mutex
	process         *fleet.Process
	began, answered map[string]int
	passed          []boundary
	reached, killed bool
}

// watch starts the subject's controller under watch. Without doom it is not killed.
func (s *subject) watch(t testing.TB, doom *boundary) *watcher {
	t.Helper()
	w := &watcher{subject: s, doom: doom, began: map[string]int{}, answered: map[string]int{}}
	s.seedGate.Watch(s.name, w.guard("seed"))
	s.userGate.Watch(s.name, w.guard("user"))
	w.mutex.Lock() // nothing passes before it is known whom to kill
	defer w.mutex.Unlock()
	w.process = s.controller(t)
	return w
}

// end kills the controller where it lives, and lets everything pass from then on.
func (w *watcher) end() {
	w.process.Kill()
	w.subject.seedGate.Watch(w.subject.name, gate.Guard{})
	w.subject.userGate.Watch(w.subject.name, gate.Guard{})
}

func (w *watcher) guard(side string) gate.Guard {
	return gate.Guard{
		Before: func(call gate.Call) bool {
			return !call.Writes() || w.pass(w.subject.write(side, call), w.began, false)
		},
		After: func(call gate.Call) bool { return w.pass(w.subject.write(side, call), w.answered, true) },
	}
}

// write says what a call writes, without the subject's name.
func (s *subject) write(side string, call gate.Call) string {
	return s.anonymous(fmt.Sprintf("%s %s %s", side, call.Method, call.Path))
}

// pass comes by a boundary: it kills there, or goes on. After a kill nothing passes.
func (w *watcher) pass(write string, counts map[string]int, after bool) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.killed {
		return false
	}
	counts[write]++
	here := boundary{write: write, nth: counts[write], after: after}
	w.passed = append(w.passed, here)
	if w.doom == nil {
		return true
	}
	if here.write == w.doom.write && here.nth == w.doom.nth {
		w.reached = true
	}
	if here != *w.doom {
		return true
	}
	w.killed = true
	w.process.Kill()
	return false
}

// over says whether the controller was killed.
func (w *watcher) over() bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.killed
}

// came says whether the write of the boundary was begun.
func (w *watcher) came() bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.reached
}

// boundaries are those that were passed, in their order.
func (w *watcher) boundaries() []boundary {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return append([]boundary{}, w.passed...)
}
