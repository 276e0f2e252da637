package upgrade_test

import (
	"fmt"
	"testing"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/upgrade"
	"github.com/trellis-addons/trellis/test/golden"
)

// begin is when the stories begin.
var begin = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// reported is a cluster with what was decided about it last.
type reported struct {
	upgrade.ClusterState
	rules  upgrade.Rules
	before upgrade.Before
	now    time.Time
}

// decide does what the controller does: it writes what was decided onto the cluster.
func (s *reported) decide() upgrade.Decision {
	made := upgrade.Decide(&s.ClusterState, s.rules, s.before, s.now)
	s.Hook, s.Workers = made.Hook, made.Workers
	s.before = upgrade.Before{Reason: made.Reason, Since: made.Since}
	return made
}

func (s *reported) gates(gates ...upgrade.Gate) { s.Gates = gates }

func line(made upgrade.Decision) []string {
	text := fmt.Sprintf("hook %t, workers %q; UpgradeHeld=%t %s: %s", made.Hook, made.Workers, made.Held, made.Reason, made.Message)
	lines := []string{text}
	if made.GaveUp != "" {
		lines = append(lines, "gave up on "+made.GaveUp)
	}
	if made.Recheck > 0 {
		lines = append(lines, "again in "+made.Recheck.String())
	}
	return lines
}

// One upgrade from beginning to end, a chain, and the ways out of waiting.
func TestUpgradeStory(t *testing.T) {
	t.Parallel()
	story := golden.NewStory("An upgrade of a cluster that waits for its add-ons")
	right := upgrade.Gate{Name: "cni", Right: true, Bridges: true}
	s := &reported{ClusterState: upgrade.ClusterState{Topology: true, Wanted: "1.36.3", Versions: []string{"1.36.3"}, Asked: "1.36.3", Workers: upgrade.WorkersFree},
		rules: upgrade.Rules{Hold: true, Timeout: time.Hour}, now: begin}
	report := func(step string, change func()) {
		change()
		story.Add(step, line(s.decide())...)
		s.now = s.now.Add(time.Minute)
	}
	report("A cluster without gates.", func() {})
	report("It has one.", func() { s.gates(right) })
	report("Its topology asks for another version, for which the gate has to move first.", func() {
		s.Wanted = "1.37.1"
		s.gates(upgrade.Gate{Name: "cni", Right: true, Problem: "moves to 1.17.0"})
	})
	report("The gate has moved.", func() { s.gates(right) })
	report("The control plane has not begun yet.", func() {})
	report("The control plane rolls.", func() { s.Asked, s.Versions = "1.37.1", []string{"1.36.3", "1.37.1"} })
	report("A tool takes the hold on workers off.", func() { s.Workers = upgrade.WorkersFree })
	report("It has two versions for days.", func() { s.now = s.now.Add(72 * time.Hour) })
	report("The control plane is there, the gate is not.", func() {
		s.Versions = []string{"1.37.1"}
		s.gates(upgrade.Gate{Name: "cni", Bridges: true, Problem: "not Ready"})
	})
	report("Nothing changes.", func() {})
	report("The gate is right.", func() { s.gates(right) })
	report("The gate breaks afterwards.", func() { s.gates(upgrade.Gate{Name: "cni", Bridges: true, Problem: "not Ready"}) })
	report("The next upgrade, on which the gate breaks.", func() {
		s.Wanted = "1.38.0"
		s.gates(upgrade.Gate{Name: "cni", Right: true, Bridges: true, Breaks: true, Problem: "nothing fits Kubernetes 1.38.0"})
	})
	report("An hour later.", func() { s.now = s.now.Add(time.Hour) })
	report("The control plane is there, the gate never gets right.", func() {
		s.Asked, s.Versions = "1.38.0", []string{"1.38.0"}
		s.gates(upgrade.Gate{Name: "cni", Problem: "not Ready"})
	})
	report("An hour later.", func() { s.now = s.now.Add(time.Hour) })
	report("Nothing changes.", func() {})
	report("The gate gets right at last.", func() { s.gates(right) })
	report("A third upgrade, and somebody takes the hook off while it waits.", func() {
		s.Wanted = "1.39.0"
		s.gates(upgrade.Gate{Name: "cni", Right: true})
		s.decide()
		s.Hook = false
	})
	report("The control plane rolls.", func() { s.Asked = "1.39.0" })
	report("It is there.", func() { s.Versions = []string{"1.39.0"}; s.gates(right) })
	report("A fourth upgrade is let go by annotation.", func() { s.Wanted, s.Off = "1.40.0", true })
	report("The annotation goes, the upgrade is over.", func() { s.Off, s.Asked, s.Versions = false, "1.40.0", []string{"1.40.0"} })
	report("The control plane moves under the hook.", func() { s.Wanted, s.Asked = "1.41.0", "1.41.0" })
	report("It is there.", func() { s.Versions = []string{"1.41.0"} })
	report("An upgrade over two minors, before Cluster API has planned its steps.", func() { s.Wanted, s.Awaits = "1.43.0", "its plan" })
	report("They are planned.", func() { s.Awaits = "" })
	report("Upgrades are not to wait any more.", func() { s.rules.Hold = false })
	story.Match(t, "testdata/story.golden")
}

// RS39: A stage of an upgrade that began while the clock was ahead ends in time once the clock is right. Red when it waits until then, or
// from each look on.
func TestAStageOfAClockThatWasAheadEndsInTime(t *testing.T) {
	t.Parallel()
	s := &reported{
		ClusterState: upgrade.ClusterState{
			Topology: true, Wanted: "1.37.1", Versions: []string{"1.36.3"}, Asked: "1.36.3", Hook: true, Workers: upgrade.WorkersFree,
			Gates: []upgrade.Gate{{Name: "cni", Problem: "not Ready"}},
		},
		rules: upgrade.Rules{Hold: true, Timeout: time.Hour}, now: begin,
		before: upgrade.Before{Reason: v1.ReasonBeforeControlPlane, Since: begin.Add(1000 * time.Hour)},
	}
	if made := s.decide(); !made.Held || made.Recheck != time.Hour || !made.Since.Equal(begin) {
		t.Errorf("held %t since %s, again in %s", made.Held, made.Since, made.Recheck)
	}
	s.now = begin.Add(59 * time.Minute)
	if made := s.decide(); !made.Held || made.Recheck != time.Minute {
		t.Errorf("a minute before its end: held %t, again in %s", made.Held, made.Recheck)
	}
	s.now = begin.Add(time.Hour)
	if made := s.decide(); made.GaveUp == "" || made.Held {
		t.Errorf("when its time is over it waits still: %s", made.Message)
	}
}
