package clusterupgrade_test

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	capiv1 "github.com/trellis-addons/trellis/apis/clusterapi/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/clusterapi"
	"github.com/trellis-addons/trellis/test/expect"
)

// steady is for how long nothing moves that is held.
const steady = 3 * time.Second

// Cluster API moves no control plane before the add-on is at a version that fits both sides, and no workers before it is right at the new
// one. Red without the hook, without the hold on workers, and when the manager that is started anew lets one of them go.
func TestAnUpgradeWaitsForItsAddons(t *testing.T) {
	w := newWorld(t, clusterapi.Options{})
	stop := w.start()
	w.installed("1.0.0", "1.36.3", metav1.ConditionTrue)
	w.says("False", v1.ReasonNotUpgrading)

	w.ask(after)
	w.says("True", v1.ReasonBeforeControlPlane)
	w.installed("1.1.0", "1.36.3", metav1.ConditionFalse)
	expect.Always(t, steady, func() error { return w.isAt(before, before) })
	stop()
	stop = w.start()
	expect.Always(t, steady, func() error { return w.isAt(before, before) })

	w.installed("1.1.0", "1.36.3", metav1.ConditionTrue)
	w.says("True", v1.ReasonBeforeWorkers)
	w.at(after, before)
	w.installed("1.1.0", "1.37.1", metav1.ConditionFalse)
	stop()
	w.start()
	expect.Always(t, steady, func() error { return w.isAt(after, before) })

	w.installed("1.1.0", "1.37.1", metav1.ConditionTrue)
	w.says("False", v1.ReasonNotUpgrading)
	w.at(after, after)
	if _, isOn := w.read().GetAnnotations()[capiv1.AnnotationBeforeUpgrade]; !isOn {
		t.Error("the hook is not put back")
	}
	w.end()
}

// Who has to go on lets an upgrade go, with the manager dead too; and upgrades that are not to wait have no annotation left.
func TestAnUpgradeIsLetGo(t *testing.T) {
	w := newWorld(t, clusterapi.Options{})
	stop := w.start()
	w.installed("1.0.0", "1.36.3", metav1.ConditionFalse)
	w.says("False", v1.ReasonNotUpgrading)
	w.ask(after)
	w.says("True", v1.ReasonBeforeControlPlane)
	stop()
	if err := clusterapi.Annotate(t.Context(), w.client, w.key, capiv1.AnnotationBeforeUpgrade, ""); err != nil {
		t.Fatal(err)
	}
	w.at(after, after)
	w.rules.Hold = false
	w.start()
	expect.Object(t, w.client, w.object(), w.isFree)
	w.end()
}

// A control plane that moves under the hook is told, and workers wait all the same; annotation upgrade-hold lets them go.
func TestAHookThatIsNotHonoured(t *testing.T) {
	goOn := make(chan struct{})
	w := newWorld(t, clusterapi.Options{WithoutRuntimeSDK: true}, func(ctx context.Context, _ clusterapi.Step) {
		select {
		case <-goOn:
		case <-ctx.Done():
		}
	})
	w.start()
	w.installed("1.0.0", "1.36.3", metav1.ConditionTrue)
	w.says("False", v1.ReasonNotUpgrading)
	w.installed("1.0.0", "1.36.3", metav1.ConditionFalse)
	w.ask(after)
	w.says("False", v1.ReasonNotHonoured)
	close(goOn)
	w.says("True", v1.ReasonBeforeWorkers)
	w.at(after, before)
	if err := clusterapi.Annotate(t.Context(), w.client, w.key, v1.AnnotationUpgradeHold, v1.UpgradeHoldOff); err != nil {
		t.Fatal(err)
	}
	w.says("False", v1.ReasonOverridden)
	w.at(after, after)
	expect.Object(t, w.client, w.object(), w.isFree)
	w.end()
}

// After its time an upgrade goes on, and an event names who was not right.
func TestAnUpgradeGoesOnAtItsTimeout(t *testing.T) {
	w := newWorld(t, clusterapi.Options{})
	w.rules.Timeout = 4 * time.Second
	w.start()
	w.installed("1.0.0", "1.36.3", metav1.ConditionFalse)
	w.says("False", v1.ReasonNotUpgrading)
	w.ask(after)
	w.says("True", v1.ReasonBeforeControlPlane)
	w.at(after, after)
	w.says("False", v1.ReasonTimedOut)
	w.end()
}
