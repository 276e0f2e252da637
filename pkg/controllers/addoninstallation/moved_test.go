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
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/lab"
	kit "github.com/trellis-addons/trellis/test/world"
)

// keptBy marks every object of manifests to stay after a removal.
func keptBy(manifests string) string {
	return strings.ReplaceAll(manifests, "metadata: {name:", "metadata: {annotations: {helm.sh/resource-policy: keep}, name:")
}

// TestObjectsMoveFromOneAddonToAnother fails if an object that an installation gave up, by another version of its
// add-on, counts as its own while it exists (decide without gaveUp); if it is deleted in between; if another add-on
// gets it before it was given up; and if the installation that gave it up repairs or removes it later.
func TestObjectsMoveFromOneAddonToAnother(t *testing.T) {
	t.Parallel()
	eachMethod(t, func(_ *testing.T, w *world, method kubermaticv1.Method) {
		w.start()
		w.moveObjects(method)
	})
}

// moveObjects makes an add-on give up objects for which another one waits, and removes both.
func (w *world) moveObjects(method kubermaticv1.Method) {
	w.t.Helper()
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
	addons := w.addonsBy(method, map[string]string{
		"a1": keptBy(definition) + "---\n" + keptBy(moved) + own, "a2": strings.TrimPrefix(own, "---\n"),
		"b": definition + "---\n" + strings.ReplaceAll(moved, "{of: a}", "{of: b}") + strings.ReplaceAll(own, "name: own", "name: other"),
	})
	w.offer("mova", kubermaticv1.CatalogueCustom, addons("1.0.0", "a1"), addons("2.0.0", "a2"))
	last := addons("1.0.0", "b")
	last.Template.CRDs = &kubermaticv1.CRDPolicy{Remove: kubermaticv1.CRDRemoveWhenUnused}
	w.offer("movb", kubermaticv1.CatalogueCustom, last)
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
	w.hurry(20, func() { w.expectReady(b, kubermaticv1.ReasonReady) }) // it is retried after a minute, and later
	for _, object := range objects {
		w.expectOwner("movb", object, a, b)
	}
	if diff := cmp.Diff(before, w.uids(objects)); diff != "" {
		w.t.Errorf("they were deleted in between (-want +got):\n%s", diff)
	}
	if data := objects[2].(*corev1.ConfigMap).Data; data["of"] != "b" {
		w.t.Errorf("the content is %v", data)
	}
	if mark := objects[1].GetAnnotations()["helm.sh/resource-policy"]; mark != "" {
		w.t.Errorf("the mark of the first add-on is still there: %q", mark)
	}
	w.deleteAll(a)
	expect.Gone(w.t, w.seed, a)
	w.afterAnother(b)
	for _, object := range objects {
		w.expectOwner("movb", object, a, b)
	}
	w.deleteAll(b)
	expect.Gone(w.t, w.seed, b)
	for _, object := range objects {
		expect.Gone(w.t, w.seed, object)
	}
}

// In any order in which an add-on gives up a definition and another one is installed, the definition becomes the
// other's, and is not deleted in between, nor are its objects. It fails if the other waits forever, or needs an
// annotation although the first one exists and gave it up.
func TestDefinitionsMoveInAnyOrder(t *testing.T) {
	t.Parallel()
	for why, act := range map[string]func(m *move){
		"A drops it first": func(m *move) {
			m.drop()
			m.begin(nil, false)
		},
		"A drops it first, and B adopts": func(m *move) {
			m.drop()
			m.begin(map[string]string{kubermaticv1.AnnotationAdopt: "true"}, false)
		},
		"A is removed while B waits": func(m *move) {
			m.begin(nil, true)
			m.deleteAll(m.from)
			expect.Gone(m.t, m.seed, m.from)
		},
		"A is removed before B comes": func(m *move) {
			m.deleteAll(m.from)
			expect.Gone(m.t, m.seed, m.from)
			m.begin(nil, false)
		},
		"the label is taken off": func(m *move) {
			m.drop()
			patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}}}`, kubermaticv1.LabelInstallation)
			expect.Merge(m.t, m.seed, definitionNamed("widgets."+m.group()), patch)
			m.begin(nil, false)
		},
		"A is paused while B comes": func(m *move) {
			m.edit(m.from, func(object *kubermaticv1.AddonInstallation) {
				object.Spec.Paused, object.Spec.AddonRef.Version = true, "2.0.0"
			})
			m.begin(nil, true)
			m.edit(m.from, func(object *kubermaticv1.AddonInstallation) { object.Spec.Paused = false })
		},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			eachMethod(t, func(t *testing.T, w *world, method kubermaticv1.Method) {
				w.start()
				own, definition := "{apiVersion: v1, kind: ConfigMap, metadata: {name: own}}\n", w.kindOf("Widget")
				addons := w.addonsBy(method, map[string]string{"a1": keptBy(definition) + "---\n" + own, "a2": own, "b": definition})
				w.offer("mova", kubermaticv1.CatalogueCustom, addons("1.0.0", "a1"), addons("2.0.0", "a2"))
				w.offer("movb", kubermaticv1.CatalogueCustom, addons("1.0.0", "b"))
				m := &move{world: w, from: w.instance("mova", "mova", "1.0.0", "")}
				w.expectReady(m.from, kubermaticv1.ReasonReady)
				made := w.custom("Widget", w.namespace, "of-a-user")
				w.create(made)
				objects := []client.Object{definitionNamed("widgets." + w.group()), made}
				w.removeAtTheEnd(objects[0])
				before := w.uids(objects)
				act(m)
				w.hurry(20, func() { w.expectReady(m.to, kubermaticv1.ReasonReady) })
				w.expectOwner("movb", objects[0], m.to)
				if diff := cmp.Diff(before, w.uids(objects)); diff != "" {
					t.Errorf("they were deleted in between (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// move is a move of a definition from installation mova, whose version 2.0.0 lacks it, to movb, which has it.
type move struct {
	*world
	from, to *kubermaticv1.AddonInstallation
}

// drop makes mova give it up.
func (m *move) drop() {
	m.t.Helper()
	m.want(m.from, "2.0.0")
	m.expectVersionReady(m.from, "2.0.0")
}

// begin creates movb.
func (m *move) begin(annotations map[string]string, isWaiting bool) {
	m.t.Helper()
	m.to = given.Installation(m.namespace, "movb", "movb", m.unique("movb"), given.NewNamespace)
	m.to.Annotations = annotations
	m.create(m.to)
	if isWaiting {
		m.expectReady(m.to, kubermaticv1.ReasonObjectExists, `belongs to add-on installation "mova"`)
	}
}

// TestWhatAVersionLacksPassesToAnotherInstance fails if a cluster-scoped object that a version lacks gets no owner,
// although another instance uses it.
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

// TestForgedMarksMoveNothing fails if a forged field manager or mark of another installation makes an add-on adopt that
// installation's objects, or its other objects outside of its record; and if a mark on a live object excludes another
// version's objects.
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
	expect.Merge(t, w.seed, object, mark)
	ours := w.instance("ours", "ours", "1.0.0", "")
	w.expectReady(ours, kubermaticv1.ReasonObjectExists, `belongs to add-on installation "theirs"`)
	w.edit(ours, func(object *kubermaticv1.AddonInstallation) {
		object.Annotations = map[string]string{kubermaticv1.AnnotationAdopt: "true"}
	})
	w.afterAnother(ours)
	w.expectReady(ours, kubermaticv1.ReasonObjectExists, `belongs to add-on installation "theirs"`)
	w.expectOwner("theirs", object, theirs, ours)
}

// keptEvents waits until a number of events report objects that stay, and returns their messages.
func (w *world) keptEvents(object client.Object, want int) (notes []string) {
	w.t.Helper()
	expect.Eventually(w.t, expect.Patience, func() error {
		notes = nil
		for _, one := range expect.Events(w.t, w.seed, object) {
			if one.Reason == kubermaticv1.EventObjectsKept {
				notes = append(notes, one.Note)
				if one.Series != nil {
					notes = append(notes, "told again: "+one.Note)
				}
			}
		}
		if len(notes) != want {
			return fmt.Errorf("events %s: %q, want %d", kubermaticv1.EventObjectsKept, notes, want)
		}
		return nil
	})
	return notes
}

// A user marks an object to stay before an upgrade that lacks it, and before a removal. It fails if it is deleted, if
// no event reports it, and if one reports it again, also after a restart.
func TestWhatAUserMarksInTheClusterOutlivesUpgradeAndRemoval(t *testing.T) {
	t.Parallel()
	eachMethod(t, func(t *testing.T, w *world, method kubermaticv1.Method) {
		stop := w.startUntil()
		both := lab.Settings + "\n---\n" + strings.Replace(lab.Settings, "settings", "rescued", 1)
		w.migrated("livekeep", method, map[string]string{"all.yaml": both}, map[string]string{"all.yaml": lab.Settings})
		object := w.install("livekeep", "1.0.0")
		w.expectVersionReady(object, "1.0.0")
		namespace := object.Spec.TargetNamespace
		keep := func(name, annotation string) types.UID {
			t.Helper()
			live := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
			expect.Merge(t, w.seed, live, fmt.Appendf(nil, `{"metadata":{"annotations":{%s}}}`, annotation))
			return live.UID
		}
		stays := func(name string, uid types.UID) {
			t.Helper()
			if live := w.configMaps(namespace)[name]; live.UID != uid || live.DeletionTimestamp != nil {
				t.Errorf("ConfigMap %s with UID %s is %q now", name, uid, live.UID)
			}
		}
		rescued := keep("rescued", `"helm.sh/resource-policy":"keep"`)
		w.want(object, "2.0.0")
		w.expectVersionReady(object, "2.0.0")
		stays("rescued", rescued)
		if notes := w.keptEvents(object, 1); !strings.Contains(notes[0], "ConfigMap "+namespace+"/rescued") {
			t.Errorf("the event says %q", notes)
		}
		w.lookedAt(object)
		stop()
		w.start()
		w.lookedAt(object)
		w.keptEvents(object, 1)
		stays("rescued", rescued)

		settings := keep("settings", `"addons.kubermatic.k8c.io/on-delete":"orphan"`)
		w.deleteAll(object)
		expect.Gone(t, w.seed, object)
		stays("settings", settings)
		stays("rescued", rescued)
		if notes := strings.Join(w.keptEvents(object, 2), "\n"); strings.Count(notes, "ConfigMap "+namespace+"/settings") != 1 ||
			strings.Count(notes, "ConfigMap "+namespace+"/rescued") != 1 {
			t.Errorf("the events say %q", notes)
		}
	})
}
