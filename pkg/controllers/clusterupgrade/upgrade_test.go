package clusterupgrade_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	capiv1 "github.com/trellis-addons/trellis/apis/clusterapi/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/times"
	"github.com/trellis-addons/trellis/test/expect"
)

// steady is for how long a hook lasts that Cluster API takes off no more.
const steady = 3 * time.Second

// mostWrites is how often an upgrade writes its Cluster: the holds go on and off, and Cluster API may take the hook off with its own.
const mostWrites = 5

// RS39: A lastTransitionTime of condition UpgradeHeld that is in the future, since a clock was ahead, is corrected. Red when it is not
// written again: another process would begin the wait again.
func TestAWaitThatBeganByAClockThatWasAheadIsWrittenAgain(t *testing.T) {
	w := newWorld(t, setting{})
	stop := w.start()
	w.waits()
	stop()
	key := w.availableKey()
	found := &v1.AddonCatalogue{}
	expect.Get(t, w.client, key, found)
	held := meta.FindStatusCondition(found.Status.Conditions, v1.ConditionUpgradeHeld)
	held.LastTransitionTime = metav1.NewTime(time.Now().Add(1000 * time.Hour))
	expect.UpdateStatus(t, w.client, found)
	w.start()
	expect.Object(t, w.client, found, func(found *v1.AddonCatalogue) error {
		held := meta.FindStatusCondition(found.Status.Conditions, v1.ConditionUpgradeHeld)
		if held == nil || times.IsAhead(held.LastTransitionTime.Time, time.Now()) {
			return fmt.Errorf("UpgradeHeld is %+v", held)
		}
		return nil
	})
	w.end()
}

// An upgrade begins to wait while the Cluster has no available catalogue, which comes later, and goes on to wait after a restart. Red when
// nobody is told then that it waits, when an event tells it twice, and when the catalogue never says so.
func TestAnUpgradeThatWaitsWithoutACatalogueIsReportedOnce(t *testing.T) {
	w := newWorld(t, setting{})
	key := w.availableKey()
	none := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	expect.Delete(t, w.client, none)
	stop := w.start()
	w.installed("1.0.0", "1.36.3", metav1.ConditionTrue)
	w.ask(after)
	w.expectEvent(v1.EventUpgradeWaits, "cni")
	w.available(w.read())
	w.says("True", v1.ReasonBeforeControlPlane)
	stop()
	w.start()
	expect.Always(t, steady, func() error { return w.reportedOnce(v1.EventUpgradeWaits) })
	w.end()
}

// Cluster API moves no control plane before the add-on is at a version that fits both sides, and no workers before it is right at the new
// one; an event of the Cluster says when each begins to wait. Red without the hook, without the hold on workers, when the manager that is started anew lets one of them go, and when all that
// writes the Cluster more often than it has to.
func TestAnUpgradeWaitsForItsAddons(t *testing.T) {
	w := newWorld(t, setting{})
	stop := w.start()
	w.installed("1.0.0", "1.36.3", metav1.ConditionTrue)
	w.says("False", v1.ReasonNotUpgrading)

	began := w.written.Load()
	w.ask(after)
	w.says("True", v1.ReasonBeforeControlPlane)
	w.expectEvent(v1.EventUpgradeWaits, "cni")
	w.installed("1.1.0", "1.36.3", metav1.ConditionFalse)
	w.stays(before, before)
	stop()
	stop = w.start()
	w.stays(before, before)

	w.installed("1.1.0", "1.36.3", metav1.ConditionTrue)
	w.says("True", v1.ReasonBeforeWorkers)
	w.expectEvent(v1.EventUpgradeWaits, "workers")
	w.at(after, before)
	w.installed("1.1.0", "1.37.1", metav1.ConditionFalse)
	stop()
	w.start()
	w.stays(after, before)

	w.installed("1.1.0", "1.37.1", metav1.ConditionTrue)
	w.says("False", v1.ReasonNotUpgrading)
	w.at(after, after)
	if _, isOn := w.read().GetAnnotations()[capiv1.AnnotationBeforeUpgrade]; !isOn {
		t.Error("the hook is not put back")
	}
	w.running.Settle("clusterupgrade")
	if written := w.written.Load() - began; written > mostWrites {
		t.Errorf("the Cluster was written %d times, %d at most", written, mostWrites)
	}
	t.Logf("the Cluster was written %d times for its upgrade, and %d writes were refused", w.written.Load()-began, w.refused.Load())
	w.end()
}
