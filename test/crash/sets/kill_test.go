package sets_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/gate"
)

// phase is one edit of a story.
type phase struct {
	// edit is what the controller has to follow; it also tells Moves what may move.
	edit func(*testing.T, *subject)
	// done is nil once it has.
	done func(*testing.T, *subject) error
}

// story is told by phases, after the set is everywhere.
type story struct {
	name   string
	phases []phase
	// halts says that the canary fails on the way.
	halts bool
}

// boundary is a place before or after the nth write of one kind.
type boundary struct {
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

// mayVary says whether another run may not come by.
func (b boundary) mayVary() bool { return strings.HasSuffix(b.write, "/status") }

// watcher sees the writes of a subject's controllers, and kills the first at a boundary.
type watcher struct {
	subject *subject
	doom    *boundary

	mutex           sync.Mutex
	process         *fleet.Process
	began, answered map[string]int
	passed          []boundary
	killed          bool
}

// watch starts the subject's controller under watch. Without doom it is not killed.
func (s *subject) watch(t *testing.T, doom *boundary) *watcher {
	t.Helper()
	w := &watcher{subject: s, doom: doom, began: map[string]int{}, answered: map[string]int{}}
	s.gate.Watch(s.name, s.log.Guard(gate.Guard{
		Before: func(call gate.Call) bool { return !call.Writes() || w.pass(call, w.began, false) },
		After:  func(call gate.Call) bool { return w.pass(call, w.answered, true) },
	}))
	w.mutex.Lock() // nothing passes before it is known whom to kill
	defer w.mutex.Unlock()
	w.process = s.start(t)
	return w
}

// pass comes by a boundary: it kills there, or goes on. After a kill nothing of the killed one passes.
func (w *watcher) pass(call gate.Call, counts map[string]int, after bool) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.killed {
		return false
	}
	write := w.subject.anonymous(call.Method + " " + call.Path)
	counts[write]++
	here := boundary{write: write, nth: counts[write], after: after}
	w.passed = append(w.passed, here)
	if w.doom == nil || here != *w.doom {
		return true
	}
	w.killed = true
	w.process.Kill()
	return false
}

// isKilled says whether the first controller was killed.
func (w *watcher) isKilled() bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.killed
}

func (w *watcher) boundaries() []boundary {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return append([]boundary{}, w.passed...)
}

// run tells the story to a new subject: the controller is killed at the boundary, if there is one, and another goes on. It gives the end,
// the boundaries that were passed, and whether the kill came.
func (s story) run(t *testing.T, p *platform, doom *boundary) (map[string]string, []boundary, bool) {
	t.Helper()
	one := p.newSubject(t)
	one.haltsOnItsWay = s.halts
	one.begin(t)
	watched := one.watch(t, doom)
	current := watched.process
	defer func() { current.Kill() }()
	for i, phase := range s.phases {
		phase.edit(t, one)
		expect.Eventually(t, patience, func() error {
			if watched.isKilled() && current == watched.process {
				one.gate.Watch(one.name, one.log.Guard(gate.Guard{}))
				current = one.start(t)
			}
			if err := phase.done(t, one); err != nil {
				return errors.Join(fmt.Errorf("phase %d: %w", i, err), one.failure(current, watched))
			}
			return nil
		})
	}
	for _, complaint := range one.moves.Complaints() {
		t.Errorf("the waves were not kept to: %s", one.anonymous(complaint))
	}
	return one.state(t), watched.boundaries(), watched.isKilled()
}

// failure is that of a controller that nobody killed.
func (s *subject) failure(current *fleet.Process, watched *watcher) error {
	if current == watched.process && watched.isKilled() {
		return nil
	}
	return current.Failure()
}

// begin brings a subject to where each story begins: the set is everywhere.
func (s *subject) begin(t *testing.T) {
	t.Helper()
	s.gate.Watch(s.name, s.log.Guard(gate.Guard{}))
	process := s.start(t)
	defer process.Kill()
	s.moves.Begin(len(addons), s.names...)
	s.copies.Put(t, s.name, s.spec())
	expect.Eventually(t, patience, func() error {
		return errors.Join(process.Failure(), s.says(t, "Complete"), s.has(t, "first", s.names...))
	})
}

// tell runs the story once without a kill, and then once for each boundary. It gives the number of kills.
func (s story) tell(t *testing.T, p *platform) int {
	t.Helper()
	want, boundaries, _ := s.run(t, p, nil)
	var mutex sync.Mutex
	kills, missed := 0, 0
	t.Run("kill", func(t *testing.T) {
		for _, at := range boundaries {
			t.Run(at.String(), func(t *testing.T) {
				t.Parallel()
				got, _, came := s.run(t, p, &at)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("killed %s, the end differs from that of a clean run (-clean +killed):\n%s", at, diff)
				}
				if !came && !at.mayVary() {
					t.Errorf("the controller was through and never came by: the writes are not the same in every run")
				}
				mutex.Lock()
				defer mutex.Unlock()
				if came {
					kills++
				} else {
					missed++
				}
			})
		}
	})
	t.Logf("%s: killed at %d of %d boundaries; %d, of the set's status, were not come by again", s.name, kills, len(boundaries), missed)
	return kills
}
