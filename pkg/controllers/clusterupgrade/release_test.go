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

// short is a timeout of each stage for tests that wait for it.
const short = 6 * time.Second

// Whatever holds an upgrade, it goes on: at once where somebody lets it go, also with the manager dead, and after its time where an add-on
// does not get right, which an event tells with its name and what it lacks. Where upgrades are not to wait, nothing is left on a Cluster.
func TestAnUpgradeIsReleased(t *testing.T) {
	t.Parallel()
	for _, way := range []struct {
		name    string
		setting setting
		goes    func(w *world)
	}{
		{"by annotation, before the control plane", setting{}, func(w *world) {
			w.start()
			w.waits()
			w.release()
		}},
		{"by annotation, before the workers", setting{}, func(w *world) {
			w.start()
			w.waitsWithWorkers()
			w.release()
		}},
		{"without a manager, before the control plane", setting{}, func(w *world) {
			stop := w.start()
			w.waits()
			stop()
			w.stays(before, before)
			expect.NoError(w.t, clusterapi.Annotate(w.t.Context(), w.client, w.key, capiv1.AnnotationBeforeUpgrade, ""))
		}},
		{"without a manager, before the workers", setting{}, func(w *world) {
			stop := w.start()
			w.waitsWithWorkers()
			stop()
			w.stays(after, before)
			w.letWorkersGo()
		}},
		{"at its timeout, since an add-on is never right", setting{timeout: short}, func(w *world) {
			w.goesAtItsTimeout(nil, "one.cni (moves to 1.1.0)", "one.cni (Progressing)")
		}},
		{"at its timeout, since the user cluster is dead", setting{timeout: short, server: "mortal"}, func(w *world) {
			mortal := fleet.Shared().Cluster("mortal")
			w.goesAtItsTimeout(func() {
				mortal.StopServer()
				w.installed("1.0.0", "1.36.3", metav1.ConditionUnknown)
			}, "one.cni (moves to 1.1.0)", "one.cni (ClusterUnreachable)")
			expect.NoError(w.t, mortal.StartServer(w.t.Context()))
		}},
		{"at its timeout, since an add-on breaks", setting{timeout: short}, func(w *world) {
			w.goesAtItsTimeout(func() {
				w.installed("1.0.0", "1.36.3", metav1.ConditionTrue)
				w.offers("1.0.0", "< 1.37")
			}, `one.cni (version "1.0.0" of add-on "cni" does not fit: needs Kubernetes < 1.37; it is 1.37.1`, "one.cni (rendered for Kubernetes 1.36.3)")
		}},
	} {
		t.Run(way.name, func(t *testing.T) {
			w := newWorld(t, way.setting)
			way.goes(w)
			w.at(after, after)
		})
	}
}

// goesAtItsTimeout has an upgrade wait for good, after something happened; what it gives up before each stage is told.
func (w *world) goesAtItsTimeout(prevent func(), reported ...string) {
	w.t.Helper()
	w.start()
	w.waits()
	since := time.Now()
	if prevent != nil {
		prevent()
	}
	w.at(after, after)
	took := time.Since(since)
	w.t.Logf("control plane and workers went on after %s, of two stages of %s", took.Round(time.Millisecond), short)
	if took < 2*short-steady {
		w.t.Error("that is too early")
	}
	w.says("False", v1.ReasonTimedOut)
	for _, who := range reported {
		w.expectGivenUp(who)
	}
}

// Upgrades that are not to wait have no annotation left: not the hook of a Cluster at rest, and not the hold on workers, which go on.
func TestWithoutTheFlagNothingIsLeft(t *testing.T) {
	w := newWorld(t, setting{})
	stop := w.start()
	w.waitsWithWorkers()
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
}

// A control plane that moves under the hook is told, and workers wait all the same; annotation upgrade-hold lets them go. Its Cluster API is
// another one, so it is tried before all others, alone.
func TestAHookThatIsNotHonoured(t *testing.T) {
	goOn := make(chan struct{})
	clusterapi.ForTest(t, fleet.Shared(), fleet.Shared().Cluster("management"), clusterapi.Options{WithoutRuntimeSDK: true})
	clusterapi.Play(t, fleet.Shared().Cluster("management"), provider)
	w := makeWorld(t, setting{rolling: func(ctx context.Context, _ clusterapi.Step) {
		select {
		case <-goOn:
		case <-ctx.Done():
		}
	}})
	w.start()
	w.installed("1.0.0", "1.36.3", metav1.ConditionTrue)
	w.says("False", v1.ReasonNotUpgrading)
	w.installed("1.0.0", "1.36.3", metav1.ConditionFalse)
	w.ask(after)
	w.says("False", v1.ReasonNotHonoured)
	close(goOn)
	w.says("True", v1.ReasonBeforeWorkers)
	w.at(after, before)
	w.release()
	w.at(after, after)
	w.end()
}
