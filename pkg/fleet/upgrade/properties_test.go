package upgrade_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/upgrade"
)

// fleets is how many random clusters are upgraded.
const fleets = 10_000

// Clusters are upgraded while gates come, break and mend, somebody takes annotations off, and the manager forgets all that is not on
// objects. Red when the hook is put on while an upgrade is pending, when control plane or workers are let go before the gates are right or
// the time is over, and when an upgrade does not end.
func TestUpgradesWaitForTheirGates(t *testing.T) {
	t.Parallel()
	for seed := range uint64(fleets) {
		random := rand.New(rand.NewPCG(seed, 1))
		s := &reported{rules: upgrade.Rules{Hold: true, Timeout: 20 * time.Minute}, now: begin, ClusterState: upgrade.ClusterState{
			Topology: true, Wanted: "1", Versions: []string{"1"}, Asked: "1", Workers: upgrade.WorkersFree,
		}}
		var history []reported
		for step := range 120 {
			s.disturb(random, step)
			history = append(history, *s)
			if problem := s.step(); problem != "" {
				t.Fatalf("cluster %d, step %d: %s\n%+v", seed, step, problem, history[max(len(history)-6, 0):])
			}
			s.platform(random)
		}
		if !slices.Equal(s.Versions, []string{s.Wanted}) || s.Workers != upgrade.WorkersFree {
			t.Fatalf("cluster %d: it is at %v with workers %s, and is to have %s", seed, s.Versions, s.Workers, s.Wanted)
		}
	}
}

// disturb changes something, in the first half of a story: the second half lets all end.
func (s *reported) disturb(random *rand.Rand, step int) {
	s.now = s.now.Add(time.Duration(1+random.IntN(3)) * time.Minute)
	if step > 50 {
		return
	}
	switch random.IntN(10) {
	case 0:
		if slices.Equal(s.Versions, []string{s.Wanted}) {
			s.Wanted += "1"
		}
	case 1, 2, 3:
		s.Gates = nil
		for i := range random.IntN(4) {
			flip := func() bool { return random.IntN(3) > 0 }
			s.Gates = append(s.Gates, upgrade.Gate{Name: fmt.Sprint(i), Right: flip(), Bridges: flip(), Breaks: !flip()})
		}
	case 4:
		if s.Workers == upgrade.WorkersHeld {
			s.Workers = upgrade.WorkersFree
		}
	case 5:
		s.Hook = s.Hook && random.IntN(4) > 0
	}
}

// step decides, and says what is wrong with that.
func (s *reported) step() string {
	observed, before := s.ClusterState, s.before
	isPending := !slices.Equal(observed.Versions, []string{observed.Wanted})
	made := s.decide()
	isOver := made.Reason == v1.ReasonTimedOut && !s.now.Before(before.Since.Add(s.rules.Timeout))
	notRight := slices.ContainsFunc(observed.Gates, func(gate upgrade.Gate) bool { return !gate.Right })
	notReady := slices.ContainsFunc(observed.Gates, func(gate upgrade.Gate) bool { return !gate.Bridges || gate.Breaks })
	switch {
	case made.Hook && !observed.Hook && isPending:
		return "the hook is put on while an upgrade is pending"
	case !made.Hook && observed.Hook && isPending && notReady && !isOver:
		return "the control plane is let go before the gates are ready"
	case made.Workers == upgrade.WorkersFree && observed.Workers == upgrade.WorkersHeld && notRight && !isOver:
		return "workers are let go before the gates are right"
	case made.Workers == upgrade.WorkersFree && observed.Workers == upgrade.WorkersHeld && isPending:
		return "workers are let go before the control plane is there"
	case made.Held != (made.Recheck > 0):
		return "it waits without end"
	}
	return ""
}

// platform does what Cluster API does: it rolls what is not held.
func (s *reported) platform(random *rand.Rand) {
	switch {
	case slices.Equal(s.Versions, []string{s.Wanted}) || random.IntN(2) == 0:
	case s.Asked != s.Wanted && !s.Hook:
		s.Asked = s.Wanted
	case s.Asked == s.Wanted && len(s.Versions) == 1:
		s.Versions = append(s.Versions, s.Wanted)
	case s.Asked == s.Wanted:
		s.Versions = s.Versions[1:]
	}
}
