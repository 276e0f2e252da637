package addoninstallation_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// TestOwnersOfRemovedFieldsAreNamed fails if fields that a repair removes are not reported.
func TestOwnersOfRemovedFieldsAreNamed(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	w.publishChart("budget", "budget", nil, map[string]string{
		"budget": "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: u}, spec: {maxUnavailable: 1, selector: {matchLabels: {a: b}}}}",
	})
	w.start()
	object := w.install("budget", "")
	w.expectEvent(kubermaticv1.EventApplied, object)
	budget := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}}
	budget.SetNamespace(object.Spec.TargetNamespace)
	budget.SetName("u")
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"maxUnavailable":null,"minAvailable":2}}`))
	expect.Patch(t, w.seed, budget, patch, client.FieldOwner("admin"))
	w.edit(object, func(object *kubermaticv1.AddonInstallation) {
		object.Annotations = map[string]string{kubermaticv1.AnnotationReconcileAt: "now"}
	})
	w.expectEvent(kubermaticv1.EventFieldsTaken, object, "field .spec.minAvailable", `"admin"`, "removed")
}
