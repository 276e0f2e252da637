package upgrades_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/gate"
)

const (
	// killsOfTheStory are about as many kills as there are with -short, spread over it; without, there are all.
	killsOfTheStory = 3
	// clusterWrites are those of its Cluster that an upgrade makes, in a clean run too: the control plane is let go while workers are
	// held, and workers are let go while the hook is back. A kill repeats none: what is to be on it is read off it.
	clusterWrites = 2
)

// nameOf a write, without what differs from run to run. Several controllers write the status of the available catalogue: what is told of
// the upgrade has a name of its own, by its reason.
func (s *subject) nameOf(call gate.Call) string {
	name := call.Method + " " + strings.ReplaceAll(call.Path, s.name, "SUBJECT")
	of, isStatus := strings.CutSuffix(name, "/status")
	if !isStatus || !strings.Contains(string(call.Body), v1.ConditionUpgradeHeld) {
		return name
	}
	var reported struct{ Status v1.AddonCatalogueStatus }
	if err := json.Unmarshal(call.Body, &reported); err != nil || len(reported.Status.Conditions) == 0 {
		return name
	}
	return of + " " + v1.ConditionUpgradeHeld + "=" + reported.Status.Conditions[0].Reason + "/status"
}

// ofTheUpgrade says whether a write is one of the Cluster, of what is told of its upgrade, or of a gate.
func ofTheUpgrade(at gate.Boundary) bool {
	return slices.ContainsFunc([]string{"/clusters/", v1.ConditionUpgradeHeld, "/addoninstallations/"}, func(part string) bool {
		return strings.Contains(at.Write, part)
	})
}

// placesOf are the boundaries to be killed at: with -short some of those at which it matters most, and else all.
func placesOf(t *testing.T, passed []gate.Boundary) []gate.Boundary {
	t.Helper()
	return gate.SpreadOver(t, passed, killsOfTheStory, ofTheUpgrade)
}

// run upgrades a new subject: its controllers are killed at the boundary, if there is one, and others go on. It gives the end, the
// boundaries that were passed, and whether the kill came.
func run(t *testing.T, p *platform, doom *gate.Boundary) (map[string]string, []gate.Boundary, bool) {
	t.Helper()
	s := p.newSubject(t)
	first := s.start(t)
	s.atRest(t, first)
	killer := gate.NewKiller(doom)
	current := killer.Begin(func() *fleet.Process { return first })
	s.gate.Watch(s.name, s.log.Guard(killer.Guard(s.nameOf)))
	defer func() { current.Kill() }()
	s.ask(t)
	expect.Eventually(t, patience, func() error {
		failure := current.Failure()
		if killer.IsKilled() && current == first {
			s.gate.Watch(s.name, s.log.Guard(gate.Guard{}))
			current, failure = s.start(t), nil
		}
		return errors.Join(s.rests(t, after, bridging, last), failure, s.player.failure())
	})
	s.expectKept(t)
	return s.state(t), killer.Passed(), killer.IsKilled()
}

// expectKept sees that nothing was let go early, and nothing written more often than it has to be.
func (s *subject) expectKept(t *testing.T) {
	t.Helper()
	for _, complaint := range s.player.reported() {
		t.Error(complaint)
	}
	if got := s.player.counted(); got != once {
		t.Errorf("what holds the upgrade went on and off so often: %+v", got)
	}
	if got := s.clusterWrites(); got > clusterWrites {
		t.Errorf("the Cluster was written %d times, want %d", got, clusterWrites)
	}
}

// Killed before or after any write of an upgrade, controllers that start again let it go on no earlier, and it ends the same: versions,
// annotations, condition UpgradeHeld, and the installations, which are those of before. The control plane never moves before each gate is
// Ready at the version that fits both sides, and no pool before each is right at the new one. Red when the hook goes before a gate is
// there, when the hold on workers comes by a second patch, when that hold goes before a gate is right, and when the hook is put on while
// an upgrade is pending.
func TestTheControllersMayDieAtAnyWriteOfAnUpgrade(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	want, passed, _ := run(t, p, nil)
	if len(passed) == 0 {
		t.Fatal("nothing was written")
	}
	kills := gate.KillEach(t, placesOf(t, passed), func(t *testing.T, at gate.Boundary) bool {
		got, _, came := run(t, p, &at)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("killed %s, the end differs from that of a clean run (-clean +killed):\n%s", at, diff)
		}
		return came
	})
	t.Logf("the controllers were killed at %d of %d boundaries", kills, len(passed))
}
