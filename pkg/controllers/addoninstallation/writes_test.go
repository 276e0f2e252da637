package addoninstallation_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
)

// The objects that add-ons may write are restricted.

// manifestOf is a manifest of a number of ConfigMaps.
func manifestOf(prefix string, count int) string {
	var manifests strings.Builder
	for i := range count {
		fmt.Fprintf(&manifests, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-%d}\n---\n", prefix, i)
	}
	return manifests.String()
}

// commit gives a repository of that name new content.
func (w *world) commit(repository, manifests string) {
	w.t.Helper()
	if _, err := w.sources.Commit(repository, map[string]string{"addon/all.yaml": manifests, "README.md": "An add-on."}); err != nil {
		w.t.Fatal(err)
	}
}

// publishFrom creates or replaces the merged catalogue of an add-on: versions 1.0.0, 2.0.0, … are folder addon of one
// repository each.
func (w *world) publishFrom(name string, kind kubermaticv1.CatalogueType, repositories ...string) {
	w.t.Helper()
	var versions []kubermaticv1.AddonVersion
	for i, repository := range repositories {
		version := w.version(offered{version: fmt.Sprintf("%d.0.0", i+1)})
		version.Source.Git.Remote = kubermaticv1.GitRemote(w.sources.GitURL + "/" + repository + ".git")
		version.Source.Git.Path = "addon"
		versions = append(versions, version)
	}
	w.publishVersions(name, kind, versions)
}

// expectSummary waits until Ready has the status and the reason and its message contains the words.
func (w *world) expectSummary(object *kubermaticv1.AddonInstallation, status, reason string, words ...string) string {
	w.t.Helper()
	expect.HasCondition(w.t, w.seed, object, expect.Is(kubermaticv1.ConditionReady, status, reason, words...))
	return meta.FindStatusCondition(object.Status.Conditions, kubermaticv1.ConditionReady).Message
}

// count is the number of an installation's ConfigMaps in the user cluster.
func (w *world) count(object *kubermaticv1.AddonInstallation) int {
	w.t.Helper()
	var list corev1.ConfigMapList
	err := w.seed.List(w.t.Context(), &list, client.InNamespace(object.Spec.TargetNamespace),
		client.HasLabels{kubermaticv1.LabelInstallation})
	expect.NoError(w.t, err)
	return len(list.Items)
}

// expectNothing checks that nothing was recorded or written for an installation.
func (w *world) expectNothing(object *kubermaticv1.AddonInstallation) {
	w.t.Helper()
	var records corev1.SecretList
	expect.List(w.t, w.seed, &records, client.InNamespace(w.namespace))
	for i := range records.Items {
		if strings.HasPrefix(string(records.Items[i].Type), "addons.kubermatic.k8c.io/release") {
			w.t.Errorf("an intent was recorded: %s", records.Items[i].Name)
		}
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: object.Spec.TargetNamespace}}
	err := w.seed.Get(w.t.Context(), client.ObjectKeyFromObject(namespace), namespace)
	if err == nil && !strings.HasPrefix(namespace.Name, "kube-") || w.count(object) > 0 {
		w.t.Errorf("something was written to namespace %s", namespace.Name)
	}
}

// AC40, AC41: Objects restricted to Core catalogues are refused before anything is written or recorded. It fails if
// step allowed is taken out of the steps, follows the intent, or ignores the catalogue's type.
func TestRestrictedCustomAddonWritesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.restrictions = catalogue.Restrictions{KubeNamespaces: true}
	w.start()
	t.Run("a target namespace of the cluster", func(t *testing.T) {
		w.t = t
		w.commit("target", manifestOf("target", 1))
		w.publishFrom("target", kubermaticv1.CatalogueCustom, "target")
		object := w.installInto("target", "kube-public", false)
		w.expectSummary(object, "False", kubermaticv1.ReasonNotAllowed, `targetNamespace "kube-public"`)
		w.expectNothing(object)
	})
	t.Run("an object in a namespace of the cluster", func(t *testing.T) {
		w.t = t
		w.commit("object", manifestOf("object", 1)+"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: kube-system}\n")
		w.publishFrom("object", kubermaticv1.CatalogueCustom, "object")
		object := w.install("object", "")
		w.expectSummary(object, "False", kubermaticv1.ReasonNotAllowed, "ConfigMap kube-system/x")
		w.expectNothing(object)
	})
	t.Run("a Core catalogue may, and what it brought outlives it", func(t *testing.T) {
		w.t = t
		w.commit("core-1", manifestOf("core", 2))
		w.commit("core-2", manifestOf("core", 3))
		w.publishFrom("free", kubermaticv1.CatalogueCore, "core-1")
		object := w.installInto("free", "kube-public", true)
		w.expectSummary(object, "True", kubermaticv1.ReasonReady, "")
		w.withdraw("free") // The type can't be changed.
		w.publishFrom("free", kubermaticv1.CatalogueCustom, "core-1", "core-2")
		w.expectSummary(object, "False", kubermaticv1.ReasonNotAllowed, `targetNamespace "kube-public"`)
		lost := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: "core-1"}}
		expect.Delete(t, w.seed, lost)
		w.lookAgain(object)
		expect.Eventually(t, expect.Patience, func() error {
			if have := w.count(object); have != 2 {
				return fmt.Errorf("%d of 2 objects are there: the one that was lost is not put back, or the new one came", have)
			}
			return nil
		})
	})
}

// installInto is install with an existing target namespace.
func (w *world) installInto(addon, namespace string, core bool) *kubermaticv1.AddonInstallation {
	w.t.Helper()
	object := given.Installation(w.namespace, addon, addon, namespace, func(made *kubermaticv1.AddonInstallation) {
		made.Spec.CoreAddon = core
	})
	w.create(object)
	return object
}

// lookAgain requests a reconciliation past caches and intervals.
func (w *world) lookAgain(object *kubermaticv1.AddonInstallation) {
	w.t.Helper()
	w.edit(object, func(object *kubermaticv1.AddonInstallation) {
		if object.Annotations == nil {
			object.Annotations = map[string]string{}
		}
		object.Annotations[kubermaticv1.AnnotationReconcileAt] = time.Now().Format(time.RFC3339Nano)
	})
}

// AC46: An add-on of too many objects is refused before anything is written or recorded. It fails if neither the
// renderer nor Prepare counts objects, or the intent is recorded before they do.
func TestTooManyObjectsWriteNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.commit("many", manifestOf("many", 2001))
	w.publishFrom("many", kubermaticv1.CatalogueCustom, "many")
	object := w.install("many", "")
	w.expectSummary(object, "False", kubermaticv1.ReasonLimitExceeded, "at most 2000 objects")
	w.expectNothing(object)
}

// AC32: If the path of an installed add-on becomes empty, the installed objects stay, and the condition says why. It
// fails if NoManifestsError has no outcome of its own but empties the objects.
func TestEmptyPathOfAnInstalledAddonRemovesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.commit("emptied", manifestOf("emptied", 3))
	w.publishFrom("emptied", kubermaticv1.CatalogueCustom, "emptied")
	object := w.install("emptied", "")
	w.expectSummary(object, "True", kubermaticv1.ReasonReady, "")
	w.commit("emptied", "# nothing any more\n")
	w.lookAgain(object)
	w.expectSummary(object, "False", kubermaticv1.ReasonNoManifests, "")
	if have := w.count(object); have != 3 {
		t.Errorf("%d of 3 objects are left", have)
	}
	w.commit("emptied", manifestOf("emptied", 4))
	w.lookAgain(object)
	w.expectSummary(object, "True", kubermaticv1.ReasonReady, "")
	if have := w.count(object); have != 4 {
		t.Errorf("%d of 4 objects are there after the path has its content again", have)
	}
}

// AC47: An upgrade that prunes most installed objects waits for an approval. It fails if the share is computed from the
// new and the old inventory together: with twenty new objects all eight old ones could be pruned.
func TestUpgradeThatDropsEverythingWaitsForApproval(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.commit("before", manifestOf("old", 8))
	w.commit("after", manifestOf("new", 20))
	w.publishFrom("dropping", kubermaticv1.CatalogueCustom, "before", "after")
	object := w.install("dropping", "1.0.0")
	w.expectSummary(object, "True", kubermaticv1.ReasonReady, "")
	w.want(object, "2.0.0")
	message := w.expectSummary(object, "False", kubermaticv1.ReasonPruneNeedsApproval, "8 objects are more than half")
	if have := w.count(object); have != 28 {
		t.Fatalf("%d of the 8 old and 20 new objects are there", have)
	}
	_, hash, found := strings.Cut(message, kubermaticv1.AnnotationPruneApproved+": ")
	if !found {
		t.Fatalf("the message shows no hash: %s", message)
	}
	w.edit(object, func(object *kubermaticv1.AddonInstallation) {
		object.Annotations = map[string]string{kubermaticv1.AnnotationPruneApproved: strings.Fields(hash)[0]}
	})
	w.expectSummary(object, "True", kubermaticv1.ReasonReady, "")
	expect.Eventually(t, expect.Patience, func() error {
		if w.count(object) != 20 {
			return errors.New("the old objects are still there although it was approved")
		}
		return nil
	})
}
