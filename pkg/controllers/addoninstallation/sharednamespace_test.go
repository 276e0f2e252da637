package addoninstallation_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
)

// L2 of the attacks: a namespace that several installations requested stays while one of them uses it, and is removed
// with the last, regardless of its creator and of their order; a foreign one stays. It fails if a namespace is removed
// with its creator or never (Inherited returns nothing), if two that are removed at once leave it to each other (none
// waits for the others), or if it stays for one that never applied anything (usersOf does not read the record).
func TestSharedNamespaceGoesWithItsLastInstallation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.renderers = bothMethods()
	w.start()
	own := webChart("1.0.0")
	delete(own, "templates/settings.yaml")
	own["templates/own.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n"
	chart := w.charts(map[string]map[string]string{"own": own})("1.0.0", "own")
	w.offer("own", kubermaticv1.CatalogueCustom, chart)
	install := func(name, namespace string) *kubermaticv1.AddonInstallation {
		object := given.Installation(w.namespace, name, "own", namespace, given.NewNamespace)
		w.create(object)
		w.expectReady(object, kubermaticv1.ReasonReady)
		return object
	}
	remove := func(objects ...*kubermaticv1.AddonInstallation) {
		for _, object := range objects {
			expect.Delete(t, w.seed, object)
		}
		for _, object := range objects {
			expect.Gone(t, w.seed, object)
		}
	}
	namespaceOf := func(name string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}

	shared := namespaceOf(w.unique("shared"))
	maker, second, third := install("b-maker", shared.Name), install("a-second", shared.Name), install("c-third", shared.Name)
	remove(maker)
	if err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(shared), shared); err != nil || shared.DeletionTimestamp != nil {
		t.Fatalf("the namespace that two others use: %v, deleted %v", err, shared.DeletionTimestamp)
	}
	remove(third, second)
	expect.Gone(t, w.seed, shared)

	unused := namespaceOf(w.unique("unused"))
	only := install("only", unused.Name)
	never := given.Installation(w.namespace, "never", "unknown", unused.Name, given.NewNamespace)
	w.create(never)
	w.expectReady(never, kubermaticv1.ReasonAddonUnknown)
	remove(only)
	expect.Gone(t, w.seed, unused)
	remove(never)

	foreign := namespaceOf(w.unique("foreign"))
	expect.Create(t, w.seed, foreign)
	remove(install("guest", foreign.Name))
	if err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign); err != nil || foreign.DeletionTimestamp != nil {
		t.Errorf("the namespace that somebody else made: %v, deleted %v", err, foreign.DeletionTimestamp)
	}
}
