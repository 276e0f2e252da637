package crash_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/gate"
	"github.com/trellis-addons/trellis/test/long"
)

// patience with many installations at a time, on a machine that has other things to do. Only what never comes takes so long.
const patience = 10 * time.Minute

// killsOfAStory are about as many kills as each story has with -short, spread over it; without, it has all.
const killsOfAStory = 2

// story is one edit, carried out by a controller that is killed at one boundary and started again.
type story struct {
	name, addon string
	// from and to are the versions before and after; "" is none.
	from, to string
	// through are writes that must be among those at whose boundaries it was killed.
	through []string
	// previous is what somebody else applied before, and the installation takes over.
	previous func(testing.TB, *subject)
	// instead: who was killed on the way is asked for the removal, and not for the rest of the way.
	instead bool
	// finally is a version with the objects of from: who was killed on the way is asked for it, and not for the rest of the way.
	finally string
	// back: what is asked for fails, and gives way to what was there.
	back bool
	// again is in the paths of what is refused, and tried again whenever somebody looks.
	again string
	// shares: a second installation of the add-on uses what is of the whole cluster, and has it in the end.
	shares bool
	// about has it killed at the boundaries of some writes alone; nil: at all.
	about func(gate.Boundary) bool
	// prepare is done before the story begins, and to settle is what a subject lacks besides to begin it.
	prepare func(testing.TB, *platform)
	begun   func(testing.TB, *subject) error
	// change is what is done, where it is not another version that is asked for.
	change func(testing.TB, *subject)
	// ended says what a subject lacks besides to be where the story comes to.
	ended func(testing.TB, *subject) error
	// stays is what the user cluster still has of a subject after the removal.
	stays []string
}

// lacks says what a subject lacks to be where the story comes to.
func (s story) lacks(t testing.TB, one *subject) error {
	switch {
	case s.back:
		return one.notBack(t, s.from)
	case s.shares:
		return errors.Join(one.unsettled(t, s.to), one.notHandedOver(t))
	case s.ended != nil:
		return errors.Join(one.unsettled(t, s.to), s.ended(t, one))
	default:
		return one.unsettled(t, s.to)
	}
}

// isGone says whether a subject lacks to be gone.
func isGone(t testing.TB, one *subject) error { return one.unsettled(t, "") }

// begin brings subjects to where the story begins, all at once.
func (s story) begin(t *testing.T, p *platform, all ...*subject) {
	t.Helper()
	if s.prepare != nil {
		s.prepare(t, p)
	}
	for _, one := range all {
		if s.previous != nil {
			s.previous(t, one)
			one.adopts = true
		}
		if s.from != "" {
			one.install(t, s.addon, s.from)
		}
	}
	if s.from != "" {
		s.settle(t, p, all, func(t testing.TB, one *subject) error {
			if s.begun != nil {
				return errors.Join(one.unsettled(t, s.from), s.begun(t, one))
			}
			return one.unsettled(t, s.from)
		})
	}
	if s.shares {
		for _, one := range all {
			one.installAs(t, one.sibling().Name, s.addon, s.from)
		}
		s.settle(t, p, all, func(t testing.TB, one *subject) error { return one.notSharing(t) })
	}
	seen := p.look(t)
	for _, one := range all {
		one.before = seen.uids(one)
	}
}

// edit is what the controller has to follow.
func (s story) edit(t *testing.T, one *subject) {
	t.Helper()
	switch {
	case s.change != nil:
		s.change(t, one)
	case s.from == "":
		one.install(t, s.addon, s.to)
	case s.to == "":
		one.remove(t)
	default:
		one.want(t, s.to)
	}
}

// settle has one controller, without a fault, serve all until none lacks anything.
func (s story) settle(t *testing.T, p *platform, all []*subject, lacks func(testing.TB, *subject) error) {
	t.Helper()
	controller := p.start(t, s.name, map[string]string{labelStory: s.name})
	defer controller.Kill()
	for _, one := range all {
		await(t, func() error { return errors.Join(controller.Failure(), lacks(t, one)) })
	}
}

// await is expect.Eventually with more patience and fewer looks, since many are waited for together.
func await(t testing.TB, holds func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		last = holds()
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("not within %s: %v", patience, last)
	}
}

// report carries the story out without a kill, and then once for each of the boundaries that it is killed at: each run must end
// as the first one did. It gives the number of boundaries.
func (s story) report(t *testing.T, p *platform) int {
	t.Helper()
	long.Turn(t, "kills*", 3)
	clean := p.newSubject(t, s.name)
	s.begin(t, p, clean)
	s.edit(t, clean)
	watched := clean.watch(t, nil)
	await(t, func() error { return errors.Join(watched.process.Failure(), s.lacks(t, clean)) })
	watched.end()
	boundaries := watched.Passed()
	s.expectThrough(t, boundaries)
	if s.about != nil {
		boundaries = slices.DeleteFunc(boundaries, func(b gate.Boundary) bool { return !s.about(b) })
	}
	whole := len(boundaries)
	boundaries = gate.Spread(t, boundaries, killsOfAStory)
	if s.instead {
		clean.remove(t)
		s.settle(t, p, []*subject{clean}, isGone)
	}
	if s.finally != "" {
		s.askFinally(t, p, clean)
	}
	want := s.outcome(clean.state(t))

	cases := make([]*subject, len(boundaries))
	for i := range cases {
		cases[i] = p.newSubject(t, s.name)
	}
	s.begin(t, p, cases...)
	missed := make([]bool, len(cases))
	t.Run("kill", func(t *testing.T) {
		for i, one := range cases {
			t.Run(boundaries[i].String(), func(t *testing.T) {
				t.Parallel()
				missed[i] = !s.kill(t, one, boundaries[i])
			})
		}
	})
	switch {
	case s.instead:
		s.remove(t, cases)
		s.settle(t, p, cases, isGone)
	case s.finally != "":
		s.askFinally(t, p, cases...)
	default:
		s.settle(t, p, cases, s.lacks)
	}
	seen := p.look(t)
	for i, one := range cases {
		if diff := cmp.Diff(want, s.outcome(one.stateIn(t, seen))); diff != "" {
			t.Errorf("killed %s, the end differs from that of a clean run (-clean +killed):\n%s", boundaries[i], diff)
		}
	}
	t.Logf("%s: killed at %d of %d boundaries, %d on the seed and %d in the user cluster; %d were not come by again",
		s.name, len(boundaries), whole, countPrefix(boundaries, "seed"), countPrefix(boundaries, "user"),
		count(missed, func(is bool) bool { return is }))
	s.clear(t, p, slices.Concat(cases, []*subject{clean}))
	return len(boundaries)
}

// askFinally asks all for the version that they are to end with.
func (s story) askFinally(t *testing.T, p *platform, all ...*subject) {
	t.Helper()
	for _, one := range all {
		one.want(t, s.finally)
	}
	s.settle(t, p, all, func(t testing.TB, one *subject) error { return one.unsettled(t, s.finally) })
}

// outcome is the part of a subject's state in which all have to be alike in the end. Those that were asked for something else on their
// way came by as many revisions as they came far.
func (s story) outcome(state map[string]string) map[string]string {
	if s.finally != "" {
		maps.DeleteFunc(state, func(name, _ string) bool { return strings.Contains(name, "record") || name == "the installation" })
	}
	return state
}

func (s story) remove(t *testing.T, all []*subject) {
	t.Helper()
	for _, one := range all {
		one.remove(t)
	}
}

// kill runs the subject's controller until it is killed at the boundary, or is through without having come by.
func (s story) kill(t *testing.T, one *subject, at gate.Boundary) bool {
	t.Helper()
	s.edit(t, one)
	watched := one.watch(t, &at)
	defer watched.end()
	await(t, func() error {
		if watched.IsKilled() {
			return nil
		}
		return errors.Join(watched.process.Failure(), s.lacks(t, one))
	})
	if !watched.IsReached() && !s.mayVary(at) {
		t.Errorf("the controller was through and never came by: the writes are not the same in every run")
	}
	return watched.IsReached()
}

// mayVary says whether a write may be made more or less often in another run: status, since that depends on what a pass happens to see
// on its way, what two installations write at once, and what is refused, after the first time.
func (s story) mayVary(at gate.Boundary) bool {
	return at.IsStatus() || s.shares || s.again != "" && at.Nth > 1 && strings.Contains(at.Write, s.again)
}

// expectThrough sees that the writes that the story is about were made.
func (s story) expectThrough(t *testing.T, boundaries []gate.Boundary) {
	t.Helper()
	for _, write := range s.through {
		if !slices.ContainsFunc(boundaries, func(b gate.Boundary) bool { return strings.HasPrefix(b.Write, write) }) {
			t.Errorf("no write %q was made; there were %s", write, boundaries)
		}
	}
}

// clear removes everything, and sees that nothing is left of any subject but what is to stay.
func (s story) clear(t *testing.T, p *platform, all []*subject) {
	t.Helper()
	if !s.instead && s.to != "" {
		s.remove(t, all)
		s.settle(t, p, all, isGone)
	}
	if s.shares {
		for _, one := range all {
			expect.Delete(t, one.seed, one.sibling())
		}
		s.settle(t, p, all, func(t testing.TB, one *subject) error { return one.siblingLeft(t) })
	}
	seen := p.look(t)
	for _, one := range all {
		if left := slices.Sorted(maps.Keys(one.stateIn(t, seen))); !slices.Equal(left, s.stays) {
			t.Errorf("after the removal of %s there are %q, want %q", one.name, left, s.stays)
		}
		for _, object := range seen.of(one) { // a definition is work for all who look at what is served
			if object.GetKind() != "CustomResourceDefinition" {
				continue
			}
			if err := p.user.Delete(t.Context(), &object); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
		}
	}
}

func countPrefix(boundaries []gate.Boundary, prefix string) int {
	return count(boundaries, func(b gate.Boundary) bool { return strings.HasPrefix(b.Write, prefix) })
}

func count[T any](all []T, counts func(T) bool) (n int) {
	for _, one := range all {
		if counts(one) {
			n++
		}
	}
	return n
}
