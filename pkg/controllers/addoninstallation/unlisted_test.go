package addoninstallation_test

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/test/expect"
	kit "github.com/trellis-addons/trellis/test/world"
)

// deadService creates an APIService that nothing serves. While it exists, no namespace of the user cluster can be
// finalized, so the test does not run in parallel.
func (w *world) deadService() *unstructured.Unstructured {
	w.t.Helper()
	group := w.id + ".example.com"
	service := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": group, "version": "v1", "groupPriorityMinimum": int64(10), "versionPriority": int64(10),
		"service": map[string]any{"namespace": "default", "name": "none"},
	}}}
	service.SetAPIVersion(calls.APIServiceGK.Group + "/v1")
	service.SetKind(calls.APIServiceGK.Kind)
	service.SetName("v1." + group)
	w.create(service)
	expect.Eventually(w.t, expect.Patience, func() error {
		if err := w.seed.Get(w.t.Context(), client.ObjectKeyFromObject(service), service); err != nil {
			return err
		}
		_, found, _ := unstructured.NestedSlice(service.Object, "status", "conditions")
		if !found {
			return errors.New("it has no conditions")
		}
		return nil
	})
	return service
}

// TestARemovalWaitsABoundedTimeForAnAPIService fails if a created namespace stays without a message because an
// APIService is down, if the removal does not continue once that is gone, and if it waits forever.
func TestARemovalWaitsABoundedTimeForAnAPIService(t *testing.T) {
	for _, restored := range []bool{true, false} {
		w := newWorld(t)
		w.clock = kit.RunningClock(t)
		stop := w.startUntil()
		w.publish("held", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
		object := w.install("held", "")
		w.ready(object)
		service := w.deadService()
		w.delete(object)
		w.expectReady(object, kubermaticv1.ReasonRemoving, "Namespace")
		w.clock.Step(2 * time.Minute)
		w.expectReady(object, kubermaticv1.ReasonRemovalBlocked, "no server serves "+service.GetName())
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: object.Spec.TargetNamespace}}
		if restored {
			w.deleteAll(service)
			kit.Hurry(w.clock, 20, func() { expect.Gone(t, w.seed, object) })
			expect.Gone(t, w.seed, namespace)
			stop()
			continue
		}
		w.clock.Step(4 * time.Minute)
		expect.Gone(t, w.seed, object.DeepCopy())
		w.expectEvent(kubermaticv1.EventNamespaceKept, object, service.GetName(), "or delete the APIService")
		if !w.has(namespace, "", namespace.Name) || namespace.DeletionTimestamp != nil {
			t.Error("the namespace is deleted although nobody knows what is in it")
		}
		w.deleteAll(service)
		stop()
	}
}
