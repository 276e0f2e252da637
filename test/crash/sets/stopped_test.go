package sets_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/gate"
	"github.com/trellis-addons/trellis/test/standins"
	"github.com/trellis-addons/trellis/test/world"
)

// takeovers are the writes of installations in a roll at which another one takes over: in the canary, behind it, and with all places
// taken.
var takeovers = []int{1, 3, 5}

// writings are how often each installation was written, by both processes.
type writings struct {
	mutex sync.Mutex
	of    map[string]int
}

// guard counts on top of another one.
func (w *writings) guard(under gate.Guard) gate.Guard {
	return gate.Guard{Before: func(call gate.Call) bool {
		if call.Method == http.MethodPatch && strings.Contains(call.Path, "/addoninstallations/") {
			w.mutex.Lock()
			w.of[call.Path]++
			w.mutex.Unlock()
		}
		return under.Before == nil || under.Before(call)
	}}
}

// twice are those that were written more than once.
func (w *writings) twice() (found []string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for path, times := range w.of {
		if times > 1 {
			found = append(found, fmt.Sprintf("%s: %d times", path, times))
		}
	}
	slices.Sort(found)
	return found
}

// ofInstallations are the writes at which one takes over from another.
func ofInstallations(call gate.Call) bool { return strings.Contains(call.Path, "/addoninstallations/") }

// compete starts a process that carries the set out while it leads.
func (s *subject) compete(t *testing.T, who string, guard gate.Guard) *fleet.Process {
	t.Helper()
	s.gate.Watch(who, s.log.Guard(guard))
	return standins.Start(t, s.gate, who, standins.Assignment{
		Catalogue: s.name, Clusters: map[string]string{labelCase: s.name}, Lease: s.name,
	})
}

func (s *subject) lease(t *testing.T) (*coordinationv1.Lease, error) {
	t.Helper()
	lease := &coordinationv1.Lease{}
	err := s.copies.Client.Get(t.Context(), client.ObjectKey{Namespace: s.name, Name: s.name}, lease)
	if err == nil && (lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "") {
		err = errors.New("nobody leads")
	}
	return lease, err
}

// looks count how often a process asks who leads.
type looks struct{ atomic.Int32 }

// guard counts what passes.
func (l *looks) guard() gate.Guard {
	return gate.Guard{Before: func(call gate.Call) bool {
		if call.Method == http.MethodGet && strings.Contains(call.Path, "/leases/") {
			l.Add(1)
		}
		return true
	}}
}

// mostLooks are how often the next process may ask from the stop of a leader on until it leads: once every world.Election.Retry. A machine
// that is busy has it ask less often. One that takes the lease to last for longer asks more often.
var mostLooks = int32((world.Election.Lease + world.TakeoverLag) / world.Election.Retry)

// takeOver has one process lead until its write of that place in a roll, where the story does something to it, and another one finish.
func takeOver(t *testing.T, s *subject, old *gate.Competitor, waiting *looks, story func()) *writings {
	t.Helper()
	s.begin(t)
	written := &writings{of: map[string]int{}}
	old.Process = s.compete(t, s.name+"-old", written.guard(old.Guard()))
	expect.Eventually(t, patience, func() error {
		_, err := s.lease(t)
		return errors.Join(old.Process.Failure(), err)
	})
	next := s.compete(t, s.name+"-next", written.guard(waiting.guard()))
	s.moves.Begin(len(addons), s.names...)
	s.want(t, "second")
	expect.Eventually(t, patience, func() error { return errors.Join(old.Process.Failure(), next.Failure(), old.Reached()) })
	story()
	expect.Eventually(t, patience, func() error {
		return errors.Join(next.Failure(), s.says(t, v1.ReasonComplete), s.has(t, "second", s.names...))
	})
	return written
}

// expectEnd sees that the old one ends, has sent nothing more, and that the waves were kept to by both.
func (s *subject) expectEnd(t *testing.T, old *gate.Competitor) {
	t.Helper()
	expect.Eventually(t, patience, func() error {
		if old.Process.Failure() == nil {
			return errors.New("the old leader goes on")
		}
		return nil
	})
	if late := old.Late(); len(late) > 0 {
		t.Errorf("after another one had led, the old leader sent:\n%s", strings.Join(late, "\n"))
	}
	for _, complaint := range s.moves.Complaints() {
		t.Errorf("the waves were not kept to: %s", s.anonymous(complaint))
	}
}

// RS40: A leader of sets that was stopped in the middle of a wave for longer than its lease writes nothing more.
// Another one leads within 5 s of the end of the lease, counted by how often it asks for it, and goes on with the wave, to the end; no
// installation is written twice. Red when the fence is always open: the old one then sends what it was about to.
func TestALeaderOfSetsThatWasStoppedWritesNothingMore(t *testing.T) {
	p := newPlatform(t)
	for _, place := range takeovers {
		t.Run(fmt.Sprintf("at write %d", place), func(t *testing.T) {
			t.Parallel()
			s := p.newSubject(t)
			old := &gate.Competitor{Place: place, Counts: ofInstallations}
			waiting, asked := &looks{}, int32(0)
			old.Reach = func() {
				if err := old.Process.Signal(syscall.SIGSTOP); err != nil {
					t.Error(err)
				}
				asked = waiting.Load()
			}
			written := takeOver(t, s, old, waiting, func() {
				lease, err := s.lease(t)
				expect.NoError(t, err)
				before := *lease.Spec.HolderIdentity
				expect.Eventually(t, patience, func() error {
					if lease, err = s.lease(t); err == nil && *lease.Spec.HolderIdentity == before {
						err = errors.New("nobody else leads")
					}
					return err
				})
				if more := waiting.Load() - asked; more > mostLooks {
					t.Errorf("the other one led after it had asked for the lease %d times, %d at most", more, mostLooks)
				}
			})
			if twice := written.twice(); len(twice) > 0 {
				t.Errorf("written more than once:\n%s", strings.Join(twice, "\n"))
			}
			old.Over()
			expect.NoError(t, old.Process.Signal(syscall.SIGCONT))
			s.expectEnd(t, old)
		})
	}
}

// RS41: Where two take themselves for the leader in the middle of a wave, the waves are kept to, and the end is right.
// The lease is given to another while the old leader can't read it, and goes on until the lease that it knows of is over. Red when
// two processes choose other clusters for the same places.
func TestTwoLeadersOfSetsKeepToTheWaves(t *testing.T) {
	p := newPlatform(t)
	var both atomic.Int32
	t.Cleanup(func() { // after all places
		if both.Load() == 0 {
			t.Error("no old leader wrote anything once another one led")
		}
	})
	for _, place := range takeovers {
		t.Run(fmt.Sprintf("at write %d", place), func(t *testing.T) {
			t.Parallel()
			s := p.newSubject(t)
			old := &gate.Competitor{Place: place, Counts: ofInstallations, Cut: true, Reach: func() {}}
			before := 0
			takeOver(t, s, old, &looks{}, func() {
				expect.Eventually(t, patience, func() error {
					lease, err := s.lease(t)
					if err != nil {
						return err
					}
					nobody := ""
					lease.Spec.HolderIdentity = &nobody
					return s.copies.Client.Update(t.Context(), lease)
				})
				expect.Eventually(t, patience, func() error {
					_, err := s.lease(t)
					return err
				})
				before = old.Written()
			})
			s.expectEnd(t, old)
			if old.Written() > before {
				both.Add(1)
			}
		})
	}
}
