package clusterupgrade_test

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	capiv1 "github.com/trellis-addons/trellis/apis/clusterapi/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/clusterapi"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

// steady is for how long nothing moves that is held.
const steady = 3 * time.Second

// mostWrites is how often an upgrade writes its Cluster: the holds go on and off, and Cluster API may take the hook off with its own.
const mostWrites = 5

// Cluster API moves no control plane before the add-on is at a version that fits both sides, and no workers before it is right at the new
// one. Red without the hook, without the hold on workers, when the manager that is started anew lets one of them go, and when all that
// writes the Cluster more often than it has to.
func TestAnUpgradeWaitsForItsAddons(t *testing.T) {
	w := newWorld(t, clusterapi.Options{})
	stop := w.start()
	w.installed("1.0.0", "1.36.3", metav1.ConditionTrue)
	w.says("False", v1.ReasonNotUpgrading)

	began := w.written.Load()
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
	expect.Never(t, steady, func() bool { return w.written.Load()-began > mostWrites })
	t.Logf("the Cluster was written %d times for its upgrade, and %d writes were refused", w.written.Load()-began, w.refused.Load())
	w.end()
}

// Who has to go on lets an upgrade go: at once by annotation upgrade-hold, and with the manager dead by taking off what holds it.
func TestAnUpgradeIsLetGo(t *testing.T) {
	t.Run("by annotation", func(t *testing.T) {
		w := newWorld(t, clusterapi.Options{})
		w.start()
		w.waits()
		if err := clusterapi.Annotate(t.Context(), w.client, w.key, v1.AnnotationUpgradeHold, v1.UpgradeHoldOff); err != nil {
			t.Fatal(err)
		}
		since := time.Now()
		expect.Object(t, w.client, w.object(), w.isFree)
		took := time.Since(since)
		if t.Logf("nothing holds it after %s", took.Round(time.Millisecond)); took > overridden {
			t.Errorf("it was held for another %s, %s at most", took, overridden)
		}
		w.says("False", v1.ReasonOverridden)
		w.at(after, after)
		w.end()
	})
	t.Run("without a manager", func(t *testing.T) {
		w := newWorld(t, clusterapi.Options{})
		stop := w.start()
		w.waits()
		stop()
		expect.Always(t, steady, func() error { return w.isAt(before, before) })
		if err := clusterapi.Annotate(t.Context(), w.client, w.key, capiv1.AnnotationBeforeUpgrade, ""); err != nil {
			t.Fatal(err)
		}
		w.at(after, after)
		w.end()
	})
}

// overridden is how long an upgrade goes on being held that somebody lets go: 2 s is the bar, where nothing else runs.
const overridden = 5 * time.Second

// Upgrades that are not to wait have no annotation left: not the hook of a Cluster at rest, and not the hold on workers, which go on.
func TestWithoutTheFlagNothingIsLeft(t *testing.T) {
	w := newWorld(t, clusterapi.Options{})
	stop := w.start()
	w.installed("1.1.0", "1.36.3", metav1.ConditionTrue)
	w.says("False", v1.ReasonNotUpgrading)
	w.ask(after)
	w.says("True", v1.ReasonBeforeWorkers)
	stop()
	if w.isFree(w.read()) == nil {
		t.Fatal("workers are not held")
	}
	w.rules.Hold = false
	stop = w.start()
	expect.Object(t, w.client, w.object(), w.isFree)
	w.at(after, after)
	stop()

	w.installed("1.1.0", "1.37.1", metav1.ConditionTrue)
	w.rules.Hold = true
	stop = w.start()
	expect.Object(t, w.client, w.object(), func(found *unstructured.Unstructured) error {
		if w.isFree(found) == nil {
			return errors.New("the hook is not on")
		}
		return nil
	})
	stop()
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

// After its time an upgrade goes on, and an event names who was not right: whether an add-on does not get right, its user cluster is dead, or
// no version of it fits what comes.
func TestAnUpgradeGoesOnAtItsTimeout(t *testing.T) {
	user := fleet.Shared().Cluster("user")
	for name, is := range map[string]struct{ prevent, mend func(w *world) }{
		"never right": {},
		"the user cluster is dead": {func(w *world) {
			user.StopServer()
			w.installed("1.0.0", "1.36.3", metav1.ConditionUnknown)
		}, func(w *world) {
			if err := user.StartServer(w.t.Context()); err != nil {
				w.t.Fatal(err)
			}
		}},
		"it breaks": {func(w *world) {
			w.installed("1.0.0", "1.36.3", metav1.ConditionTrue)
			w.offersOnly("1.0.0")
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, clusterapi.Options{})
			w.rules.Timeout = 6 * time.Second
			w.start()
			w.waits()
			since := time.Now()
			if is.prevent != nil {
				is.prevent(w)
			}
			w.at(after, after)
			took := time.Since(since)
			if is.mend != nil {
				is.mend(w)
			}
			t.Logf("control plane and workers went on after %s, of two stages of %s", took.Round(time.Millisecond), w.rules.Timeout)
			if took < 2*w.rules.Timeout-steady {
				t.Error("that is too early")
			}
			w.says("False", v1.ReasonTimedOut)
			w.expectGivenUp("one.cni")
			w.end()
		})
	}
}
