package addoninstallation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
	kit "github.com/trellis-addons/trellis/test/world"
)

// kindOf is a CustomResourceDefinition of a namespaced kind, in a group of the world's.
func (w *world) kindOf(kind string) string {
	plural := strings.ToLower(kind) + "s"
	w.removeAtTheEnd(definitionNamed(plural + "." + w.group()))
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.%[3]s}
spec:
  group: %[3]s
  names: {kind: %[2]s, plural: %[1]s}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`, plural, kind, w.group())
}

func (w *world) group() string { return w.namespace + ".example.com" }

// custom is an object of the world's group in a namespace, as in the user cluster.
func (w *world) custom(kind, namespace, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: w.group(), Version: "v1", Kind: kind})
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

func definitionNamed(name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	object.SetName(name)
	return object
}

// replacing returns a function that waits until other objects have replaced these.
func (w *world) replacing(objects ...client.Object) (back func()) {
	w.t.Helper()
	before := map[types.UID]bool{}
	for _, object := range objects {
		expect.Read(w.t, w.seed, object)
		before[object.GetUID()] = true
	}
	return func() {
		w.t.Helper()
		expect.Eventually(w.t, 3*expect.Patience, func() error {
			for _, object := range objects {
				now := object.DeepCopyObject().(client.Object)
				err := w.seed.Get(w.t.Context(), client.ObjectKeyFromObject(object), now)
				if err != nil || before[now.GetUID()] {
					return fmt.Errorf("%s %q is not back: %v", object.GetObjectKind().GroupVersionKind().Kind, object.GetName(), err)
				}
			}
			return nil
		})
	}
}

// replaced deletes objects, and waits until they are restored.
func (w *world) replaced(objects ...client.Object) {
	w.t.Helper()
	back := w.replacing(objects...)
	for _, object := range objects {
		expect.Delete(w.t, w.seed, object)
	}
	w.hurry(5, back) // the next comparison finds them missing
}

// addons commits go-template add-ons, each of one file; the function returns the version with one of them.
func (w *world) addons(files map[string]string) func(version, addon string) kubermaticv1.AddonVersion {
	w.t.Helper()
	placed := map[string]string{}
	for name, text := range files {
		placed[name+"/all.yaml"] = text
	}
	all := w.content("", kubermaticv1.MethodGoTemplate, "mixed", placed)
	return func(version, addon string) kubermaticv1.AddonVersion {
		made := *all.DeepCopy()
		made.Version, made.Source.Git.Path = version, "mixed/"+addon
		made.Values = &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"version":%q}`, version)}
		return made
	}
}

// TestDefinitionDeletedByHandIsPutBack fails if a kind that is no longer served makes the comparison fail: no object of
// the installation is restored, and only an edit of the installation ends that; and for the others if their own missing
// objects are not found with it.
func TestDefinitionDeletedByHandIsPutBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.clock, w.driftInterval = kit.RunningClock(t), 3*time.Second
	w.start()
	widget := fmt.Sprintf("---\napiVersion: %s/v1\nkind: Widget\nmetadata: {name: first}\nspec: {size: 3}\n", w.group())
	settings := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {color: green}\n"
	addons := w.addons(map[string]string{"operator": w.kindOf("Widget") + widget + settings, "consumer": widget + settings})
	w.offer("operator", kubermaticv1.CatalogueCustom, addons("1.0.0", "operator"))
	w.offer("consumer", kubermaticv1.CatalogueCustom, addons("1.0.0", "consumer"))
	install := func(addon, name string) *kubermaticv1.AddonInstallation {
		object := given.Installation(w.namespace, name, addon, w.unique(name), given.NewNamespace)
		w.create(object)
		w.expectReady(object, kubermaticv1.ReasonReady)
		return object
	}
	installations := []*kubermaticv1.AddonInstallation{
		install("operator", "operator"), install("consumer", "first"), install("consumer", "second"),
	}
	objects := w.ofEach(installations)
	w.replaced(objects[1:]...) // a comparison was made: it shows the served kinds, not only the rollouts

	definition := definitionNamed("widgets." + w.group())
	back := w.replacing(append(objects, definition)...)
	expect.Delete(t, w.seed, definition)
	for _, object := range objects {
		if err := w.seed.Delete(t.Context(), object); client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
			t.Fatal(err)
		}
	}
	w.hurry(5, back)
	for _, object := range installations {
		w.expectReady(object, kubermaticv1.ReasonReady)
	}
	for _, object := range slices.Backward(installations) { // and they are removed, objects of the kind before its definition
		expect.Delete(t, w.seed, object)
		w.hurry(5, func() { expect.Gone(t, w.seed, object) })
	}
	expect.Gone(t, w.seed, definition)
}

// ofEach are the custom resource and the settings of each installation.
func (w *world) ofEach(installations []*kubermaticv1.AddonInstallation) (objects []client.Object) {
	for _, installation := range installations {
		namespace := installation.Spec.TargetNamespace
		settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "settings"}}
		objects = append(objects, w.custom("Widget", namespace, "first"), settings)
	}
	return objects
}
