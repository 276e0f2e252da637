package upgrades_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/gate"
)

// stageLasts is the timeout of a stage where no gate gets right. A process that counted anew would hold for as long again.
const stageLasts = 5 * time.Second

// A stage ends at its time although the controllers were killed in it, and were away until then: the clock is the transition of condition
// UpgradeHeld, for the control plane and for workers. Red when a process that starts takes a stage that it finds for begun now.
func TestAStageKeepsItsClockOverAKill(t *testing.T) {
	t.Parallel()
	s := newPlatform(t).newSubject(t)
	s.rules.Timeout = stageLasts
	process := s.start(t)
	s.atRest(t, process)
	s.player.stick()
	s.ask(t)
	for _, stage := range []struct {
		reason string
		isOn   func(holds) bool
	}{
		{v1.ReasonBeforeControlPlane, func(now holds) bool { return now.Hook }},
		{v1.ReasonBeforeWorkers, func(now holds) bool { return now.Workers }},
	} {
		since := s.waitsSince(t, stage.reason)
		process.Kill()
		expect.Always(t, time.Until(since.Add(stageLasts)), func() error { // nobody is there to let it go
			if now := holdsOf(s.cluster(t)); !stage.isOn(now) {
				return fmt.Errorf("nothing waits any more at %s: %+v", stage.reason, now)
			}
			return nil
		})
		looked := &firstLook{}
		s.gate.Watch(s.name, s.log.Guard(looked.guard()))
		process = s.start(t)
		expect.Eventually(t, patience, func() error { return errors.Join(process.Failure(), s.isFree(t, stage.isOn)) })
		took := time.Since(looked.at())
		t.Logf("%s: let go %s after the new process had looked", stage.reason, took.Round(time.Millisecond))
		if took >= stageLasts {
			t.Errorf("it waited for %s more", took)
		}
	}
	for _, complaint := range s.player.told() {
		t.Error(complaint)
	}
}

// firstLook is when a process read first what an earlier one had told of the upgrade.
type firstLook struct {
	mutex sync.Mutex
	first time.Time
}

func (f *firstLook) guard() gate.Guard {
	return gate.Guard{Before: func(call gate.Call) bool {
		f.mutex.Lock()
		defer f.mutex.Unlock()
		if f.first.IsZero() && call.Method == http.MethodGet && strings.HasSuffix(call.Path, "/addoncatalogues/available-"+clusterName) {
			f.first = time.Now()
		}
		return true
	}}
}

func (f *firstLook) at() time.Time {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.first
}

// waitsSince waits until an upgrade waits at a stage, and gives the time from which that counts.
func (s *subject) waitsSince(t *testing.T, reason string) (since time.Time) {
	t.Helper()
	expect.Eventually(t, patience, func() error {
		found, err := s.available(t)
		if err != nil {
			return err
		}
		if held := meta.FindStatusCondition(found.Status.Conditions, v1.ConditionUpgradeHeld); held != nil {
			since = held.LastTransitionTime.Time
		}
		return errors.Join(expect.Condition(found, v1.ConditionUpgradeHeld, string(metav1.ConditionTrue), reason), s.player.failure())
	})
	return since
}

// isFree is nil once a hold is off.
func (s *subject) isFree(t *testing.T, isOn func(holds) bool) error {
	t.Helper()
	if isOn(holdsOf(s.cluster(t))) {
		return errors.New("the hold is on")
	}
	return nil
}
