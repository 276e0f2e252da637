package addoninstallation_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// Add-ons without objects for a cluster, such as KKP's storage classes for a provider without any.

// onOnly is a manifest of a number of ConfigMaps, for clusters whose installation requests them.
func onOnly(prefix string, count int) string {
	return "# nothing, mostly\n{{ if .Variables.on }}\n" + manifestOf(prefix, count) + "{{ end }}\n"
}

func (w *world) turn(object *kubermaticv1.AddonInstallation, on bool) {
	w.t.Helper()
	w.edit(object, func(object *kubermaticv1.AddonInstallation) { object.Spec.Values = raw(fmt.Sprintf(`{"on":%t}`, on)) })
}

// expectCount waits until the user cluster has that number of ConfigMaps of the installation.
func (w *world) expectCount(object *kubermaticv1.AddonInstallation, want int) {
	w.t.Helper()
	expect.Eventually(w.t, expect.Patience, func() error {
		if have := w.count(object); have != want {
			return fmt.Errorf("there are %d objects, want %d", have, want)
		}
		return nil
	})
}

// AC32: An add-on whose templates render to nothing for its cluster is Ready with a message, and writes nothing, not
// even its namespace. It follows its values both ways. Installed objects are removed only after an approval of exactly
// these, even if they are so few that an upgrade could prune them freely, and are repaired until then. It fails if an
// empty rendering is an error; if it is a revision like any other; if its namespace is created; if the approval is not
// required, or any text is accepted.
func TestNothingForThisClusterIsReady(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := w.startUntil()
	w.commit("nothing", onOnly("nothing", 3))
	w.publishFrom("nothing", kubermaticv1.CatalogueCustom, "nothing")
	object := w.install("nothing", "")
	w.expectSummary(object, "True", kubermaticv1.ReasonReady, "nothing to apply")
	w.expectRendered(object, kubermaticv1.ReasonNothingToApply)
	expect.Gone(t, w.seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: object.Spec.TargetNamespace}})
	stop()
	w.start() // the recorded state is read correctly
	w.lookAgain(object)
	w.expectSummary(object, "True", kubermaticv1.ReasonReady, "nothing to apply")

	w.turn(object, true)
	w.expectSummary(object, "True", kubermaticv1.ReasonReady, "is installed and healthy")
	w.expectRendered(object, kubermaticv1.ReasonRendered)
	w.expectCount(object, 3)

	w.turn(object, false)
	w.expectSummary(object, "False", kubermaticv1.ReasonNoManifests, "no longer renders")
	lost := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: object.Spec.TargetNamespace, Name: "nothing-1"}}
	expect.Delete(t, w.seed, lost)
	w.approve(object, "0123456789abcdef")
	w.lookAgain(object)
	w.expectCount(object, 3)
	w.expectSummary(object, "False", kubermaticv1.ReasonNoManifests, "")

	expect.Eventually(t, expect.Patience, func() error { // the restored object is another one, and needs another hash
		if err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(object.Status.Conditions, kubermaticv1.ConditionReady)
		if ready.Status == metav1.ConditionTrue {
			return nil
		}
		if _, hash, found := strings.Cut(ready.Message, kubermaticv1.AnnotationPruneApproved+": "); found {
			w.approve(object, strings.Fields(hash)[0])
		}
		return fmt.Errorf("it says %s", ready.Message)
	})
	w.expectSummary(object, "True", kubermaticv1.ReasonReady, "nothing to apply")
	w.expectCount(object, 0)
}

// AC32: A path without any template is an error, and not an add-on without objects for its cluster. It fails if it
// counts as one.
func TestPathWithoutTemplatesIsAnError(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	if _, err := w.sources.Commit("wrong", map[string]string{"addon/values.yml": "a: b\n", "README.md": "An add-on."}); err != nil {
		t.Fatal(err)
	}
	w.publishFrom("wrong", kubermaticv1.CatalogueCustom, "wrong")
	object := w.install("wrong", "")
	w.expectSummary(object, "False", kubermaticv1.ReasonNoManifests, "*.yaml")
	w.expectNothing(object)
}

func (w *world) approve(object *kubermaticv1.AddonInstallation, hash string) {
	w.t.Helper()
	w.edit(object, func(object *kubermaticv1.AddonInstallation) {
		if object.Annotations == nil {
			object.Annotations = map[string]string{}
		}
		object.Annotations[kubermaticv1.AnnotationPruneApproved] = hash
	})
}

func (w *world) expectRendered(object *kubermaticv1.AddonInstallation, reason string) {
	w.t.Helper()
	expect.HasCondition(w.t, w.seed, object.DeepCopy(), expect.Is(kubermaticv1.ConditionRendered, "True", reason))
}
