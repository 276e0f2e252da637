package upgrades_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/gate"
	"github.com/trellis-addons/trellis/test/world"
)

// takeovers are the writes of an upgrade at which another process takes over: the control plane is let go, workers are, and a gate goes to
// the version that fits both sides.
var takeovers = []struct {
	name   string
	counts func(gate.Call) bool
	place  int
}{
	{"the control plane is let go", writesCluster, 1},
	{"workers are let go", writesCluster, 2},
	{"a gate moves", func(call gate.Call) bool {
		return call.Method == http.MethodPatch && strings.HasSuffix(call.Path, "/addoninstallations/"+network)
	}, 1},
}

func writesCluster(call gate.Call) bool { return call.Writes() && isOfCluster(call) }

// pair are two processes that may lead for one subject.
type pair struct {
	*subject
	old *gate.Competitor
}

// who are their names at the gate.
func (s *subject) who(process string) string { return s.name + "-" + process }

// compete has one process lead a subject to rest, and another one wait for its lease.
func compete(t *testing.T, s *subject, old *gate.Competitor) pair {
	t.Helper()
	for _, who := range []string{"old", "next"} {
		s.gate.Watch(s.who(who), s.log.Guard(gate.Guard{}))
	}
	old.Process = s.startAs(t, s.who("old"), s.name)
	expect.Eventually(t, patience, func() error {
		_, err := s.holder(t)
		return errors.Join(old.Process.Failure(), err)
	})
	s.startAs(t, s.who("next"), s.name)
	s.atRest(t, old.Process)
	s.gate.Watch(s.who("old"), s.log.Guard(old.Guard()))
	return pair{s, old}
}

// holder leads.
func (s *subject) holder(t *testing.T) (string, error) {
	t.Helper()
	lease := &coordinationv1.Lease{}
	if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: s.catalogue, Name: s.name}, lease); err != nil {
		return "", err
	}
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return "", errors.New("nobody leads")
	}
	return *lease.Spec.HolderIdentity, nil
}

// reached waits for the write at which the other one takes over.
func (p pair) reached(t *testing.T) {
	t.Helper()
	expect.Eventually(t, patience, func() error { return errors.Join(p.old.Reached(), p.player.failure()) })
}

// otherLeads waits until somebody else leads.
func (p pair) otherLeads(t *testing.T, before string) {
	t.Helper()
	expect.Eventually(t, patience, func() error {
		now, err := p.holder(t)
		if err == nil && now == before {
			return errors.New("nobody else leads")
		}
		return err
	})
}

// end waits for the upgrade's, and sees that all was kept.
func (p pair) end(t *testing.T) {
	t.Helper()
	expect.Eventually(t, patience, func() error { return errors.Join(p.rests(t, after, bridging, last), p.player.failure()) })
	p.expectKept(t)
}

// expectOver sees that the old process ends, and sent nothing since Over.
func (p pair) expectOver(t *testing.T) {
	t.Helper()
	expect.Eventually(t, patience, func() error {
		if p.old.Process.Failure() == nil {
			return errors.New("the old leader goes on")
		}
		return nil
	})
	if late := p.old.Late(); len(late) > 0 {
		t.Errorf("after another one had led, the old leader sent:\n%s", strings.Join(late, "\n"))
	}
	for _, complaint := range p.player.reported() {
		t.Error(complaint)
	}
}

// A leader that was stopped at a write of an upgrade, for longer than its lease, writes nothing more. Another one goes on with the upgrade:
// nothing is let go early, and what holds it goes on and off once. Red when the fence is always open: the old one then sends what it was
// about to.
func TestALeaderThatWasStoppedInAnUpgradeWritesNothingMore(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	for _, at := range takeovers {
		t.Run(at.name, func(t *testing.T) {
			t.Parallel()
			old := &gate.Competitor{Counts: at.counts, Place: at.place}
			old.Reach = func() {
				if err := old.Process.Signal(syscall.SIGSTOP); err != nil {
					t.Error(err)
				}
			}
			s := compete(t, p.newSubject(t), old)
			led, err := s.holder(t)
			expect.NoError(t, err)
			s.ask(t)
			s.reached(t)
			s.otherLeads(t, led)
			s.end(t)
			old.Over()
			expect.NoError(t, old.Process.Signal(syscall.SIGCONT))
			s.expectOver(t)
		})
	}
}

// Where two take themselves for the leader in the middle of an upgrade, nothing is let go early either, and what holds it goes on and off
// once. The lease is given to another while the old leader can't read it, which goes on until the lease that it knows of is over. Red when
// the hook goes by one patch and the hold on workers comes by another.
func TestTwoLeadersLetNoUpgradeGoEarly(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	var both atomic.Int32
	t.Cleanup(func() { // after all places
		if both.Load() == 0 {
			t.Error("no old leader wrote anything once another one led")
		}
	})
	for _, at := range takeovers {
		t.Run(at.name, func(t *testing.T) {
			t.Parallel()
			s := compete(t, p.newSubject(t), &gate.Competitor{Counts: at.counts, Place: at.place, Cut: true, Reach: func() {}})
			led, err := s.holder(t)
			expect.NoError(t, err)
			s.ask(t)
			s.reached(t)
			s.player.share(world.Election.Lease)
			s.giveLeaseAway(t)
			s.otherLeads(t, led)
			mark := s.log.Mark()
			s.end(t)
			s.expectOver(t)
			for _, write := range s.log.Since(mark) {
				if write.Who == s.who("old") && !strings.Contains(write.Path, "/leases/") {
					both.Add(1)
				}
			}
		})
	}
}

// giveLeaseAway has nobody hold the lease: who waits for it takes it at once.
func (p pair) giveLeaseAway(t *testing.T) {
	t.Helper()
	expect.Eventually(t, patience, func() error {
		lease := &coordinationv1.Lease{}
		if err := p.client.Get(t.Context(), client.ObjectKey{Namespace: p.catalogue, Name: p.name}, lease); err != nil {
			return fmt.Errorf("reading the lease: %w", err)
		}
		nobody := ""
		lease.Spec.HolderIdentity = &nobody
		return p.client.Update(t.Context(), lease)
	})
}
