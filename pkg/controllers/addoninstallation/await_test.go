package addoninstallation_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/gate"
	"github.com/trellis-addons/trellis/test/given"
	kit "github.com/trellis-addons/trellis/test/world"
)

// overheard records the calls of a client.
type overheard struct {
	mutex sync.Mutex
	calls []string
}

func (o *overheard) hear(call gate.Call) bool {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.calls = append(o.calls, call.Method+" "+call.Path)
	return true
}

// sinceThen are the calls since the previous call of sinceThen.
func (o *overheard) sinceThen() []string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	calls := o.calls
	o.calls = nil
	return calls
}

// overhear makes the controller, before its start, reach the user cluster through a gate.
func (w *world) overhear() *overheard {
	w.t.Helper()
	_, heard := w.gated()
	return heard
}

// gated is overhear with a gate that can be shut.
func (w *world) gated() (*gate.Gate, *overheard) {
	w.t.Helper()
	made := gate.New(w.t, fleet.Shared().Cluster("both"))
	secret := given.Kubeconfig(w.namespace, made.Kubeconfig(w.t, "controller"))
	expect.Update(w.t, w.seed, secret)
	heard := &overheard{}
	made.Watch("controller", gate.Guard{Before: heard.hear})
	return made, heard
}

// expectLooks waits for several reads of the obstacle, and checks that they are only these calls, and that no status is
// written for them.
func (w *world) expectLooks(object *kubermaticv1.AddonInstallation, heard *overheard, look string) {
	w.t.Helper()
	version, looks := object.ResourceVersion, 0
	heard.sinceThen()
	w.hurry(5, func() {
		expect.Eventually(w.t, expect.Patience, func() error {
			for _, call := range heard.sinceThen() {
				if call != look {
					w.t.Fatalf("a look made call %q, want %q alone", call, look)
				}
				looks++
			}
			if looks < 3 {
				return fmt.Errorf("%d looks", looks)
			}
			return nil
		})
	})
	expect.Read(w.t, w.seed, object)
	if object.ResourceVersion != version {
		w.t.Error("looks wrote the status")
	}
}

// expectNext checks that the status has the number of attempts, and the latest time of the next one.
func (w *world) expectNext(object *kubermaticv1.AddonInstallation) {
	w.t.Helper()
	state := object.Status
	if state.Failures != 1 || state.NextAttempt == nil || time.Until(state.NextAttempt.Time) > 5*time.Minute {
		w.t.Errorf("failures %d, next attempt %v", state.Failures, state.NextAttempt)
	}
}

// TestAMissingNamespaceIsLookedForByOneCall fails if a missing namespace is looked up once a minute, if a lookup is a
// whole reconciliation or writes a status, or if the status does not show it.
func TestAMissingNamespaceIsLookedForByOneCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.clock = kit.RunningClock(t)
	heard := w.overhear()
	w.start()
	w.publish("homeless", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	object := &kubermaticv1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "homeless"}}
	object.Spec.AddonRef.Name, object.Spec.TargetNamespace = "homeless", w.unique("homeless")
	w.create(object)
	message := w.expectSummary(object, "False", kubermaticv1.ReasonNamespaceMissing, "in the user cluster")
	if !strings.Contains(message, "create it there") {
		t.Errorf("message %q", message)
	}
	w.expectNext(object)
	w.expectLooks(object, heard, "GET /api/v1/namespaces/"+object.Spec.TargetNamespace)
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: object.Spec.TargetNamespace}})
	w.ready(object)
	if object.Status.Failures != 0 || object.Status.NextAttempt != nil {
		t.Errorf("what is ready has %d failures, next attempt %v", object.Status.Failures, object.Status.NextAttempt)
	}
}

// TestAnObjectInTheWayIsLookedAtByOneCall fails if the object in conflict is written at each read, if its deletion is
// not seen, or if its owner's own changes count as a deletion.
func TestAnObjectInTheWayIsLookedAtByOneCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.clock = kit.RunningClock(t)
	heard := w.overhear()
	w.start()
	w.publish("kept-out", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	namespace := w.unique("kept-out")
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "settings"}, Data: map[string]string{"beats": "0"}}
	w.create(foreign)
	object := w.install("kept-out", "")
	w.expectSummary(object, "False", kubermaticv1.ReasonObjectExists, "settings")
	w.expectNext(object)
	foreign.Data["beats"] = "1"
	expect.Update(t, w.seed, foreign)
	w.expectLooks(object, heard, "GET /api/v1/namespaces/"+namespace+"/configmaps/settings")
	w.delete(foreign)
	w.ready(object)
}
