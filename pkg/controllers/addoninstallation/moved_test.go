package addoninstallation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	kit "github.com/trellis-addons/trellis/test/world"
)

// keptBy marks every object of manifests as one that stays.
func keptBy(manifests string) string {
	return strings.ReplaceAll(manifests, "metadata: {name:", "metadata: {annotations: {helm.sh/resource-policy: keep}, name:")
}

// Red when what an installation gave up, by another version of its add-on, is another's for as long as that installation exists
// (decide without gaveUp); when it is deleted in between; when it goes to another add-on before it was given up; and when the one
// that gave it up repairs or removes it later.
func TestObjectsMoveFromOneAddonToAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.clock, w.driftInterval = kit.RunningClock(t), 3*time.Second
	w.start()
	own := "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: own}}\n"
	moved := fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s}
rules: []
---
apiVersion: v1
kind: ConfigMap
metadata: {name: moved, namespace: %[2]s}
data: {of: a}
`, w.group(), w.unique("both"))
	definition := w.kindOf("Widget")
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.unique("both")}})
	addons := w.addons(map[string]string{
		"a1": keptBy(definition) + "---\n" + keptBy(moved) + own, "a2": strings.TrimPrefix(own, "---\n"),
		"b": definition + "---\n" + strings.ReplaceAll(moved, "{of: a}", "{of: b}") + strings.ReplaceAll(own, "name: own", "name: other"),
	})
	w.offer("mova", kubermaticv1.CatalogueCustom, addons("1.0.0", "a1"), addons("2.0.0", "a2"))
	w.offer("movb", kubermaticv1.CatalogueCustom, addons("1.0.0", "b"))
	a := w.instance("mova", "mova", "1.0.0", "")
	w.expectReady(a, kubermaticv1.ReasonReady)
	b := w.instance("movb", "movb", "1.0.0", "")
	w.expectReady(b, kubermaticv1.ReasonObjectExists, `belongs to add-on installation "mova"`)
	objects := []client.Object{
		definitionNamed("widgets." + w.group()), w.clusterRole(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.unique("both"), Name: "moved"}},
	}
	for _, object := range objects {
		w.expectOwner("mova", object, a, b)
	}
	before := w.uids(objects)

	w.want(a, "2.0.0")
	w.expectReady(a, kubermaticv1.ReasonReady)
	w.hurry(20, func() { w.expectReady(b, kubermaticv1.ReasonReady) }) // it is tried again after a minute, and later
	for _, object := range objects {
		w.expectOwner("movb", object, a, b)
	}
	if diff := cmp.Diff(before, w.uids(objects)); diff != "" {
		t.Errorf("they were deleted in between (-want +got):\n%s", diff)
	}
	if data := objects[2].(*corev1.ConfigMap).Data; data["of"] != "b" {
		t.Errorf("the content is %v", data)
	}
	if mark := objects[1].GetAnnotations()["helm.sh/resource-policy"]; mark != "" {
		t.Errorf("the mark of the first add-on is still there: %q", mark)
	}
	w.deleteAll(a)
	expect.Gone(t, w.seed, a)
	w.afterAnother(b)
	for _, object := range objects {
		w.expectOwner("movb", object, a, b)
	}
	w.deleteAll(b)
	expect.Gone(t, w.seed, b)
	for _, object := range objects {
		expect.Gone(t, w.seed, object)
	}
}

// Red when a version that lacks an object of the whole cluster leaves it to nobody, although another instance uses it.
func TestWhatAVersionLacksPassesToAnotherInstance(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.clock, w.driftInterval = kit.RunningClock(t), 3*time.Second
	w.start()
	addons := w.addons(map[string]string{"operator": w.operator(), "less": "{apiVersion: v1, kind: ConfigMap, metadata: {name: own}}\n"})
	w.offer("operator", kubermaticv1.CatalogueCustom, addons("1.0.0", "operator"), addons("2.0.0", "less"))
	first := w.instance("operator", "first", "1.0.0", "")
	w.expectShared(first, "")
	second := w.instance("operator", "second", "1.0.0", "")
	w.expectShared(second, "first")
	objects := []client.Object{w.clusterRole(), definitionNamed("widgets." + w.group())}
	before := w.uids(objects)
	w.want(first, "2.0.0")
	w.expectReady(first, kubermaticv1.ReasonReady)
	for _, object := range objects {
		w.expectOwner("second", object, first, second)
	}
	w.expectShared(second, "")
	if diff := cmp.Diff(before, w.uids(objects)); diff != "" {
		t.Errorf("they were deleted in between (-want +got):\n%s", diff)
	}
}

// Red when a forged field manager or mark of another installation has an add-on take over what that
// installation has, or what it keeps of its own beside its record; and when a mark on a live object keeps another version's objects away.
func TestForgedMarksMoveNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.clock, w.driftInterval = kit.RunningClock(t), 3*time.Second
	w.start()
	role, _, _ := strings.Cut(w.gate(), "---")
	role = strings.ReplaceAll(role, "{{ .Variables.instance }}", "a")
	addons := w.addons(map[string]string{"a": role, "b": strings.ReplaceAll(role, `instance: "a"`, `instance: "b"`)})
	w.offer("theirs", kubermaticv1.CatalogueCustom, addons("1.0.0", "a"))
	w.offer("ours", kubermaticv1.CatalogueCustom, addons("1.0.0", "b"))
	theirs := w.instance("theirs", "theirs", "1.0.0", "")
	w.expectReady(theirs, kubermaticv1.ReasonReady)
	object := w.clusterRole()
	w.expectOwner("theirs", object, theirs)
	mark := []byte(`{"metadata":{"annotations":{"helm.sh/resource-policy":"keep","addons.kubermatic.k8c.io/on-delete":"orphan"}}}`)
	if err := w.seed.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, mark)); err != nil {
		t.Fatal(err)
	}
	ours := w.instance("ours", "ours", "1.0.0", "")
	w.expectReady(ours, kubermaticv1.ReasonObjectExists, `belongs to add-on installation "theirs"`)
	w.edit(ours, func(object *kubermaticv1.AddonInstallation) {
		object.Annotations = map[string]string{kubermaticv1.AnnotationAdopt: "true"}
	})
	w.afterAnother(ours)
	w.expectReady(ours, kubermaticv1.ReasonObjectExists, `belongs to add-on installation "theirs"`)
	w.expectOwner("theirs", object, theirs, ours)
}
