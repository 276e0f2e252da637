package upgrades_test

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// stageLasts is the timeout of a stage where no gate gets right. No test waits for so long: what a stage began is put back by it.
const stageLasts = time.Hour

// A stage ends at its time although the controllers were killed in it, and were away until then: the clock is the transition of condition
// UpgradeHeld, for the control plane and for workers. While no process runs, the transition is put back by the time that a stage lasts. Red
// when a process that starts takes a stage that it finds for begun now: it would hold for an hour more.
func TestAStageKeepsItsClockOverAKill(t *testing.T) {
	t.Parallel()
	s := newPlatform(t).newSubject(t)
	s.rules.Timeout = stageLasts
	process := s.start(t)
	s.atRest(t, process)
	s.player.stick()
	s.ask(t)
	s.player.share(2 * stageLasts) // it sees the clock put back
	for _, stage := range []struct {
		reason string
		isOn   func(holds) bool
	}{
		{v1.ReasonBeforeControlPlane, func(now holds) bool { return now.Hook }},
		{v1.ReasonBeforeWorkers, func(now holds) bool { return now.Workers }},
	} {
		s.waits(t, stage.reason)
		process.Kill()
		<-process.Done()
		s.putClockBack(t, stage.reason)
		if now := holdsOf(s.cluster(t)); !stage.isOn(now) {
			t.Errorf("nothing waits at %s, and no process let it go: %+v", stage.reason, now)
		}
		process = s.start(t)
		expect.Eventually(t, patience, func() error { return errors.Join(process.Failure(), s.isFree(t, stage.isOn)) })
	}
	for _, complaint := range s.player.reported() {
		t.Error(complaint)
	}
}

// waits until an upgrade waits at a stage.
func (s *subject) waits(t *testing.T, reason string) {
	t.Helper()
	expect.Eventually(t, patience, func() error {
		found, err := s.available(t)
		if err != nil {
			return err
		}
		return errors.Join(expect.Condition(found, v1.ConditionUpgradeHeld, string(metav1.ConditionTrue), reason), s.player.failure())
	})
}

// putClockBack has the stage have begun a timeout ago.
func (s *subject) putClockBack(t *testing.T, reason string) {
	t.Helper()
	found, err := s.available(t)
	expect.NoError(t, err)
	held := meta.FindStatusCondition(found.Status.Conditions, v1.ConditionUpgradeHeld)
	if held == nil || held.Reason != reason {
		t.Fatalf("the upgrade does not wait at %s any more: %+v", reason, held)
	}
	held.LastTransitionTime = metav1.NewTime(held.LastTransitionTime.Add(-stageLasts))
	expect.UpdateStatus(t, s.client, found)
}

// isFree is nil once a hold is off.
func (s *subject) isFree(t *testing.T, isOn func(holds) bool) error {
	t.Helper()
	if isOn(holdsOf(s.cluster(t))) {
		return errors.New("the hold is on")
	}
	return nil
}
