package sets_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/gate"
)

// killsOfAStory are about as many kills as each story has with -short, spread over it; without, it has all.
const killsOfAStory = 3

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

// watcher sees the writes of a subject's controllers, and kills the first at a boundary.
type watcher struct {
	*gate.Killer
	process *fleet.Process
}

// watch starts the subject's controller under watch. Without doom it is not killed.
func (s *subject) watch(t *testing.T, doom *gate.Boundary) *watcher {
	t.Helper()
	w := &watcher{Killer: gate.NewKiller(doom)}
	s.gate.Watch(s.name, s.log.Guard(w.Guard(func(call gate.Call) string { return s.anonymous(call.Method + " " + call.Path) })))
	w.process = w.Begin(func() *fleet.Process { return s.start(t) })
	return w
}

// run tells the story to a new subject: the controller is killed at the boundary, if there is one, and another goes on. It gives the end,
// the boundaries that were passed, and whether the kill came.
func (s story) run(t *testing.T, p *platform, doom *gate.Boundary) (map[string]string, []gate.Boundary, bool) {
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
			if watched.IsKilled() && current == watched.process {
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
	return one.state(t), watched.Passed(), watched.IsKilled()
}

// failure is that of a controller that nobody killed.
func (s *subject) failure(current *fleet.Process, watched *watcher) error {
	if current == watched.process && watched.IsKilled() {
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

// report runs the story once without a kill, and then once for each boundary, or for some. It gives the number of kills.
func (s story) report(t *testing.T, p *platform) int {
	t.Helper()
	want, passed, _ := s.run(t, p, nil)
	t.Logf("%s: there are %d boundaries", s.name, len(passed))
	return gate.KillEach(t, gate.Spread(t, passed, killsOfAStory), func(t *testing.T, at gate.Boundary) bool {
		got, _, came := s.run(t, p, &at)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("killed %s, the end differs from that of a clean run (-clean +killed):\n%s", at, diff)
		}
		return came
	})
}
