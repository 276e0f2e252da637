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
)

// patience with many installations at a time.
const patience = 3 * time.Minute

// story is one edit, carried out by a controller that is killed at one boundary and started again.
type story struct {
	name, addon string
	// from and to are the versions before and after; "" is none.
	from, to string
	// through are writes that must be among those at whose boundaries it was killed.
	through []string
	// instead: who was killed on the way is asked for the removal, and not for the rest of the way.
	instead bool
}

// end is the version that everything comes to.
func (s story) end() string {
	if s.instead {
		return ""
	}
	return s.to
}

// begin brings subjects to where the story begins, all at once.
func (s story) begin(t *testing.T, p *platform, all ...*subject) {
	t.Helper()
	if s.from == "" {
		return
	}
	for _, one := range all {
		one.install(t, s.addon, s.from)
	}
	s.settle(t, p, s.from, all)
}

// edit is what the controller has to follow.
func (s story) edit(t *testing.T, one *subject) {
	t.Helper()
	switch {
	case s.from == "":
		one.install(t, s.addon, s.to)
	case s.to == "":
		one.remove(t)
	default:
		one.want(t, s.to)
	}
}

// settle has one controller, without a fault, bring all to the version.
func (s story) settle(t *testing.T, p *platform, version string, all []*subject) {
	t.Helper()
	controller := p.start(t, s.name, map[string]string{labelStory: s.name})
	defer controller.Kill()
	for _, one := range all {
		await(t, func() error { return errors.Join(controller.Failure(), one.unsettled(t, version)) })
	}
}

// await is expect.Eventually with more patience and fewer looks, since many are waited for together.
func await(t *testing.T, holds func() error) {
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

// tell carries the story out without a kill, and then once for each boundary it came by, on either side: each run must end
// as the first one did. It gives the number of boundaries.
func (s story) tell(t *testing.T, p *platform) int {
	t.Helper()
	clean := p.newSubject(t, s.name)
	s.begin(t, p, clean)
	s.edit(t, clean)
	watched := clean.watch(t, nil)
	await(t, func() error { return errors.Join(watched.process.Failure(), clean.unsettled(t, s.to)) })
	watched.end()
	boundaries := watched.boundaries()
	s.expectThrough(t, boundaries)
	if s.instead {
		clean.remove(t)
		s.settle(t, p, "", []*subject{clean})
	}
	want := clean.state(t)

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
	if s.instead {
		s.remove(t, cases)
	}
	s.settle(t, p, s.end(), cases)
	for i, one := range cases {
		if diff := cmp.Diff(want, one.state(t)); diff != "" {
			t.Errorf("killed %s, the end differs from that of a clean run (-clean +killed):\n%s", boundaries[i], diff)
		}
	}
	t.Logf("%s: killed at %d boundaries of %d writes, %d on the seed and %d in the user cluster; %d were not come by again",
		s.name, len(boundaries), len(boundaries)/2, countPrefix(boundaries, "seed")/2, countPrefix(boundaries, "user")/2,
		count(missed, func(is bool) bool { return is }))
	s.clear(t, p, slices.Concat(cases, []*subject{clean}))
	return len(boundaries)
}

func (s story) remove(t *testing.T, all []*subject) {
	t.Helper()
	for _, one := range all {
		one.remove(t)
	}
}

// kill runs the subject's controller until it is killed at the boundary, or is through without having come by.
func (s story) kill(t *testing.T, one *subject, at boundary) bool {
	t.Helper()
	s.edit(t, one)
	watched := one.watch(t, &at)
	defer watched.end()
	await(t, func() error {
		if watched.over() {
			return nil
		}
		return errors.Join(watched.process.Failure(), one.unsettled(t, s.to))
	})
	if !watched.came() && !at.isStatus() {
		t.Errorf("the controller was through and never came by: the writes are not the same in every run")
	}
	return watched.came()
}

// expectThrough sees that the writes that the story is about were made.
func (s story) expectThrough(t *testing.T, boundaries []boundary) {
	t.Helper()
	for _, write := range s.through {
		if !slices.ContainsFunc(boundaries, func(b boundary) bool { return strings.HasPrefix(b.write, write) }) {
			t.Errorf("no write %q was made; there were %s", write, boundaries)
		}
	}
}

// clear removes everything, and sees that nothing is left of any subject.
func (s story) clear(t *testing.T, p *platform, all []*subject) {
	t.Helper()
	if s.end() != "" {
		s.remove(t, all)
		s.settle(t, p, "", all)
	}
	for _, one := range all {
		if left := slices.Sorted(maps.Keys(one.state(t))); len(left) > 0 {
			t.Errorf("after the removal of %s there are %s", one.name, left)
		}
	}
}

func countPrefix(boundaries []boundary, prefix string) int {
	return count(boundaries, func(b boundary) bool { return strings.HasPrefix(b.write, prefix) })
}

func count[T any](all []T, counts func(T) bool) (n int) {
	for _, one := range all {
		if counts(one) {
			n++
		}
	}
	return n
}
