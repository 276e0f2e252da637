package addoninstallation_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/test/expect"
)

// kkpAddon creates an Addon of KKP in the cluster's namespace, with KKP's finalizer.
func (w *world) kkpAddon(name string) *unstructured.Unstructured {
	w.t.Helper()
	addon := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"name": name}}}
	addon.SetGroupVersionKind(kkpv1.GroupVersion.WithKind(cluster.KindKKPAddon.Kind))
	addon.SetNamespace(w.namespace)
	addon.SetName(name)
	addon.SetFinalizers([]string{cluster.KKPAddonFinalizer})
	w.create(addon)
	return addon
}

// release releases a deleted Addon, as KKP does, or as an admin does who keeps its objects.
func (w *world) release(addon *unstructured.Unstructured) {
	w.t.Helper()
	expect.Read(w.t, w.seed, addon)
	addon.SetFinalizers(nil)
	expect.Update(w.t, w.seed, addon)
}

// expectReady waits until Ready has the reason and its message contains all of the parts.
func (w *world) expectReady(object *kubermaticv1.AddonInstallation, reason string, parts ...string) {
	w.t.Helper()
	expect.Object(w.t, w.seed, object, func(object *kubermaticv1.AddonInstallation) error {
		ready := meta.FindStatusCondition(object.Status.Conditions, kubermaticv1.ConditionReady)
		if ready == nil || ready.Reason != reason {
			return fmt.Errorf("Ready is %+v, want %s", ready, reason)
		}
		return expect.Says(ready.Message, parts...)
	})
}

// TestKKPAddonExists fails if an installation is applied while there is a KKP Addon of its name (the step "kkp-addon"
// taken out), if the solution is not reported, if the end of the Addon wakes no installation (ofChange without its case
// for the kind: it is applied a minute later), or if an Addon of another cluster or name counts.
func TestKKPAddonExists(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.publish("legacy", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	w.kkpAddon("other")
	addon := w.kkpAddon("legacy")
	object := w.install("legacy", "")
	w.expectReady(object, kubermaticv1.ReasonKKPAddonExists, "cleanup-manifests", kubermaticv1.AnnotationAdopt)
	if version := w.installed(object); version != "" || object.Status.LastApplied != nil {
		t.Errorf("version %q was applied beside KKP's", version)
	}
	expect.Delete(t, w.seed, addon)
	w.expectReady(object, kubermaticv1.ReasonKKPAddonExists, "is removing its Addon", "cleanup-manifests")
	w.release(addon)
	w.expectInstalled(object, "1.0.0", "")

	t.Run("one that comes later stops everything but removal", func(t *testing.T) {
		w.t = t
		again := w.kkpAddon("legacy")
		w.expectReady(object, kubermaticv1.ReasonKKPAddonExists)
		settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: object.Spec.TargetNamespace, Name: "settings"}}
		expect.Delete(t, w.seed, settings)
		w.afterAnother(object)
		if version := w.installed(object); version != "" {
			t.Errorf("version %q was put back under KKP's hands", version)
		}
		w.release(again)
		expect.NoError(t, client.IgnoreNotFound(w.seed.Delete(t.Context(), again)))
		w.expectInstalled(object, "1.0.0", "")
		w.kkpAddon("legacy")
		w.expectReady(object, kubermaticv1.ReasonKKPAddonExists)
		expect.Delete(t, w.seed, object)
		expect.Gone(t, w.seed, object)
	})
}
