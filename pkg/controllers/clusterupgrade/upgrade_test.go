package clusterupgrade_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	capiv1 "github.com/trellis-addons/trellis/apis/clusterapi/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// steady is for how long a hook lasts that Cluster API takes off no more.
const steady = 3 * time.Second

// mostWrites is how often an upgrade writes its Cluster: the holds go on and off, and Cluster API may take the hook off with its own.
const mostWrites = 5

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
