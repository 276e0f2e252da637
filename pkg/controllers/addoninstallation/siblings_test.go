package addoninstallation_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
	kit "github.com/trellis-addons/trellis/test/world"
)

// operator is an add-on with a kind, a cluster-scoped role that a value changes, and an object of the kind.
func (w *world) operator() string {
	return w.kindOf("Widget") + fmt.Sprintf(`---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s}
rules:
- {apiGroups: [%[1]s], resources: [widgets], verbs: [{{ .Variables.verb | default "get" }}]}
---
apiVersion: %[1]s/v1
kind: Widget
metadata: {name: first}
spec: {size: 3}
`, w.group())
}

// instance creates an installation of an add-on, in its own namespace.
func (w *world) instance(addon, name, version, values string) *kubermaticv1.AddonInstallation {
	w.t.Helper()
	object := given.Installation(w.namespace, name, addon, w.unique(name), given.In(version), given.NewNamespace)
	if values != "" {
		object.Spec.Values = &runtime.RawExtension{Raw: []byte(values)}
	}
	w.create(object)
	return object
}

func (w *world) clusterRole() *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: w.group()}}
}

// ownerOf is the installation whose label and field manager an object has, without those of another installation; ""
// otherwise.
func (w *world) ownerOf(object client.Object, among ...*kubermaticv1.AddonInstallation) string {
	w.t.Helper()
	if err := w.seed.Get(w.t.Context(), client.ObjectKeyFromObject(object), object); err != nil || object.GetDeletionTimestamp() != nil {
		return ""
	}
	managers := map[string]bool{}
	for _, entry := range object.GetManagedFields() {
		if strings.HasPrefix(entry.Manager, "addon-installation/") {
			managers[entry.Manager] = true
		}
	}
	for _, one := range among {
		owner := ownership.Owner{ClusterUID: w.cluster.UID, Installation: one.Name}
		if object.GetLabels()[kubermaticv1.LabelInstallation] == owner.ID() && managers[owner.FieldManager()] && len(managers) == 1 {
			return one.Name
		}
	}
	return ""
}

func (w *world) expectOwner(want string, object client.Object, among ...*kubermaticv1.AddonInstallation) {
	w.t.Helper()
	expect.Eventually(w.t, 2*expect.Patience, func() error {
		if got := w.ownerOf(object, among...); got != want {
			return fmt.Errorf("%s belongs to %q, want %q; managers %v", object.GetName(), got, want, managersOf(object))
		}
		return nil
	})
}

func managersOf(object client.Object) (names []string) {
	for _, entry := range object.GetManagedFields() {
		names = append(names, entry.Manager)
	}
	return names
}

// expectShared waits until condition Applied names the owner, or none if owner is "".
func (w *world) expectShared(object *kubermaticv1.AddonInstallation, owner string) {
	w.t.Helper()
	expect.Eventually(w.t, 2*expect.Patience, func() error {
		if err := w.seed.Get(w.t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		applied := meta.FindStatusCondition(object.Status.Conditions, kubermaticv1.ConditionApplied)
		ready := meta.FindStatusCondition(object.Status.Conditions, kubermaticv1.ConditionReady)
		if applied == nil || ready == nil || ready.Status != metav1.ConditionTrue {
			return fmt.Errorf("%s is not Ready: %+v, Applied %+v", object.Name, ready, applied)
		}
		if reported := strings.Contains(applied.Message, fmt.Sprintf("belongs to installation %q", owner)); reported != (owner != "") {
			return fmt.Errorf("%s: Applied says %q, want owner %q", object.Name, applied.Message, owner)
		}
		return nil
	})
}

func (w *world) deleteAll(objects ...client.Object) {
	w.t.Helper()
	for _, object := range objects {
		expect.Delete(w.t, w.seed, object)
	}
}

// TestInstancesOfAnAddonShareWhatIsOfTheCluster fails if an object of another instance is refused (share never
// settles); if the owner's removal deletes objects that others use (removable without SplitShared), if none adopts them
// after that (no step inherit), or if they stay after the last one is gone.
func TestInstancesOfAnAddonShareWhatIsOfTheCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.clock, w.driftInterval = kit.RunningClock(t), 3*time.Second
	w.start()
	w.offer("operator", kubermaticv1.CatalogueCustom, w.addons(map[string]string{"operator": w.operator()})("1.0.0", "operator"))
	first := w.instance("operator", "first", "1.0.0", "")
	w.expectShared(first, "")
	definition, role := definitionNamed("widgets."+w.group()), w.clusterRole()
	w.expectOwner("first", definition, first)
	uid, version := definition.GetUID(), definition.GetResourceVersion()

	second, third := w.instance("operator", "second", "1.0.0", ""), w.instance("operator", "third", "1.0.0", "")
	all := []*kubermaticv1.AddonInstallation{first, second, third}
	w.expectShared(second, "first")
	w.expectShared(third, "first")
	w.expectOwner("first", role, all...)
	w.expectOwner("first", definition, all...)
	if now := definition.GetResourceVersion(); now != version {
		t.Errorf("the definition was written: version %s became %s", version, now)
	}
	widget := w.custom("Widget", second.Spec.TargetNamespace, "first")
	expect.Read(t, w.seed, widget)
	w.replaced(role) // by its owner alone
	w.expectOwner("first", role, all...)

	w.deleteAll(first)
	expect.Gone(t, w.seed, first)
	owner := ""
	expect.Eventually(t, 2*expect.Patience, func() error {
		owner = w.ownerOf(definition, second, third)
		if owner == "" || w.ownerOf(role, second, third) == "" {
			return fmt.Errorf("nobody took them over: %v and %v", managersOf(definition), managersOf(role))
		}
		return nil
	})
	if definition.GetUID() != uid {
		t.Errorf("the definition was deleted in between: UID %s became %s", uid, definition.GetUID())
	}
	after := w.custom("Widget", second.Spec.TargetNamespace, "first")
	if err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(after), after); err != nil || after.GetUID() != widget.GetUID() {
		t.Errorf("the second's object of the kind: %v, UID %s became %s", err, widget.GetUID(), after.GetUID())
	}
	w.replaced(role)

	w.deleteAll(second, third)
	expect.Gone(t, w.seed, second)
	expect.Gone(t, w.seed, third)
	expect.Gone(t, w.seed, definition)
	expect.Gone(t, w.seed, role)
}

// TestNewerVersionTakesWhatIsShared fails if the older instance restores its content (yield never settles), or if an
// older one that is installed later does not use objects of the newer one.
func TestNewerVersionTakesWhatIsShared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.clock, w.driftInterval = kit.RunningClock(t), 3*time.Second
	w.start()
	newer := strings.Replace(w.operator(), "verbs: [", "verbs: [list, ", 1)
	addons := w.addons(map[string]string{"old": w.operator(), "new": newer})
	w.offer("operator", kubermaticv1.CatalogueCustom, addons("1.0.0", "old"), addons("1.1.0", "new"))
	first := w.instance("operator", "first", "1.0.0", "")
	w.expectShared(first, "")
	second := w.instance("operator", "second", "1.1.0", "")
	w.expectShared(second, "first") // the definition is the same
	role, definition := w.clusterRole(), definitionNamed("widgets."+w.group())
	w.expectOwner("second", role, first, second)
	w.expectOwner("first", definition, first, second)
	w.expectShared(first, "second")
	verbs := func() []string { return role.Rules[0].Verbs }
	if diff := cmp.Diff([]string{"list", "get"}, verbs()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	third := w.instance("operator", "third", "1.0.0", "")
	w.expectShared(third, "first")
	w.replaced(role)
	w.expectOwner("second", role, first, second, third)
	if diff := cmp.Diff([]string{"list", "get"}, verbs()); diff != "" {
		t.Errorf("put back (-want +got):\n%s", diff)
	}

	w.deleteAll(second)
	expect.Gone(t, w.seed, second)
	expect.Eventually(t, 2*expect.Patience, func() error {
		if owner := w.ownerOf(role, first, third); owner == "" || !cmp.Equal([]string{"get"}, verbs()) {
			return fmt.Errorf("it belongs to %q and says %v", owner, verbs())
		}
		return nil
	})
	w.want(first, "1.1.0")
	expect.Eventually(t, 2*expect.Patience, func() error {
		if owner := w.ownerOf(role, first, third); owner != "first" || !cmp.Equal([]string{"list", "get"}, verbs()) {
			return fmt.Errorf("after the upgrade it belongs to %q and says %v", owner, verbs())
		}
		return nil
	})
	w.deleteAll(first, third)
	expect.Gone(t, w.seed, first)
	expect.Gone(t, w.seed, third)
	expect.Gone(t, w.seed, role)
	expect.Gone(t, w.seed, definition)
}

// TestWhatDiffersOrIsForeignIsNotShared fails if a different object of the same version is adopted or used, or if
// another add-on's object is.
func TestWhatDiffersOrIsForeignIsNotShared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.clock, w.driftInterval = kit.RunningClock(t), 3*time.Second
	w.start()
	addons := w.addons(map[string]string{"operator": w.operator()})
	w.offer("operator", kubermaticv1.CatalogueCustom, addons("1.0.0", "operator"))
	w.offer("copy", kubermaticv1.CatalogueCustom, addons("1.0.0", "operator"))
	first := w.instance("operator", "first", "1.0.0", "")
	w.expectShared(first, "")
	other := w.instance("operator", "other", "1.0.0", `{"verb": "list"}`)
	w.expectReady(other, kubermaticv1.ReasonObjectExists, `shared with installation "first"`, "the same version, and the same values")
	foreign := w.instance("copy", "foreign", "1.0.0", "")
	w.expectReady(foreign, kubermaticv1.ReasonObjectExists, `belongs to add-on installation "first"`, "from one of the two")
	w.expectOwner("first", w.clusterRole(), first, other, foreign)

	w.edit(other, func(object *kubermaticv1.AddonInstallation) { object.Spec.Values = nil })
	w.expectShared(other, "first")
	w.edit(first, func(object *kubermaticv1.AddonInstallation) {
		object.Spec.Values = &runtime.RawExtension{Raw: []byte(`{"verb": "list"}`)}
	})
	w.expectReady(first, kubermaticv1.ReasonObjectExists, `shared with installation "other"`, "or remove that installation")
	w.edit(first, func(object *kubermaticv1.AddonInstallation) { object.Spec.Values = nil })
	w.expectShared(first, "")
	w.expectShared(other, "first")
	w.deleteAll(other, foreign)
	expect.Gone(t, w.seed, other)
	expect.Gone(t, w.seed, foreign)
	w.expectOwner("first", w.clusterRole(), first)
}

// TestWhatDiffersPassesOnWhenItsOwnerGoes fails if the refused installation does not adopt the object once its owner is
// gone, as its message says; if it needs an annotation for that, or the object is deleted in between; and if the object
// outlives both.
func TestWhatDiffersPassesOnWhenItsOwnerGoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	addons := w.addons(map[string]string{"operator": w.operator()})
	w.offer("operator", kubermaticv1.CatalogueCustom, addons("1.0.0", "operator"))
	first := w.instance("operator", "first", "1.0.0", "")
	w.expectShared(first, "")
	other := w.instance("operator", "other", "1.0.0", `{"verb": "list"}`)
	w.expectReady(other, kubermaticv1.ReasonObjectExists, "or remove one of the two", `if "first" is removed, this one adopts the object`)
	role, definition := w.clusterRole(), definitionNamed("widgets."+w.group())
	w.expectOwner("first", role, first, other)
	w.expectOwner("first", definition, first, other)
	before := []types.UID{role.GetUID(), definition.GetUID()}

	w.deleteAll(first)
	expect.Gone(t, w.seed, first)
	w.expectShared(other, "")
	w.expectOwner("other", role, first, other)
	w.expectOwner("other", definition, first, other)
	if diff := cmp.Diff(before, []types.UID{role.GetUID(), definition.GetUID()}); diff != "" {
		t.Errorf("they were deleted in between (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"list"}, role.Rules[0].Verbs); diff != "" {
		t.Errorf("the content (-want +got):\n%s", diff)
	}
	w.deleteAll(other)
	expect.Gone(t, w.seed, other)
	expect.Gone(t, w.seed, role)
	expect.Gone(t, w.seed, definition)
}

// TestInstancesThatComeAndGoTogether fails if two that begin together both own the shared object, refuse each other, or
// leave it behind when they are removed together; and if an object that an installation left on purpose has no owner
// after that.
func TestInstancesThatComeAndGoTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.clock, w.driftInterval, w.concurrency = kit.RunningClock(t), 3*time.Second, 4
	w.start()
	w.offer("operator", kubermaticv1.CatalogueCustom, w.addons(map[string]string{"operator": w.operator()})("1.0.0", "operator"))
	names := []string{"a", "b", "c", "d"}
	for round := range 3 {
		var all []*kubermaticv1.AddonInstallation
		var objects []client.Object
		for _, name := range names {
			made := w.instance("operator", fmt.Sprintf("%s%d", name, round), "1.0.0", "")
			all, objects = append(all, made), append(objects, made)
		}
		for _, one := range all {
			w.expectReady(one, kubermaticv1.ReasonReady)
		}
		owners := map[types.UID]bool{}
		for _, shared := range []client.Object{definitionNamed("widgets." + w.group()), w.clusterRole()} {
			expect.Eventually(t, 2*expect.Patience, func() error {
				if w.ownerOf(shared, all...) == "" {
					return fmt.Errorf("%s has no one owner: %v", shared.GetName(), managersOf(shared))
				}
				return nil
			})
			owners[shared.GetUID()] = true
		}
		if round == 1 {
			w.edit(all[0], func(object *kubermaticv1.AddonInstallation) { object.Spec.DeletionPolicy = kubermaticv1.DeletionOrphan })
		}
		w.deleteAll(objects...)
		for _, one := range all {
			expect.Gone(t, w.seed, one)
		}
		if round == 1 { // an object that one left on purpose is deleted manually
			w.deleteAll(w.custom("Widget", all[0].Spec.TargetNamespace, "first"))
			for _, shared := range []client.Object{definitionNamed("widgets." + w.group()), w.clusterRole()} {
				expect.NoError(t, client.IgnoreNotFound(w.seed.Delete(t.Context(), shared)))
			}
		}
		expect.Gone(t, w.seed, definitionNamed("widgets."+w.group()))
		expect.Gone(t, w.seed, w.clusterRole())
	}
}

// Hostile record. It fails if an unreadable record counts as empty (sibling without Unknown): objects that its
// installation may use would be removed with the other one.
func TestWhatAnUnreadableRecordMayHaveStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.offer("operator", kubermaticv1.CatalogueCustom, w.addons(map[string]string{"operator": w.operator()})("1.0.0", "operator"))
	first := w.instance("operator", "first", "1.0.0", "")
	w.expectShared(first, "")
	second := w.instance("operator", "second", "1.0.0", "")
	w.expectShared(second, "first")
	role, definition := w.clusterRole(), definitionNamed("widgets."+w.group())
	w.expectOwner("first", role, first)
	w.expectOwner("first", definition, first)
	w.edit(second, func(object *kubermaticv1.AddonInstallation) { object.Spec.Paused = true })
	w.expectReady(second, kubermaticv1.ReasonPaused)
	owner := ownership.Owner{ClusterUID: w.cluster.UID, Installation: "second"}
	var sound []corev1.Secret
	for _, secret := range w.recordSecrets() {
		if secret.Labels[kubermaticv1.LabelInstallation] == owner.ID() {
			sound = append(sound, *secret.DeepCopy())
			w.writeRecord(secret, []byte("spoilt"))
		}
	}
	if len(sound) == 0 {
		t.Fatal("the second has no record")
	}

	w.deleteAll(first)
	expect.Gone(t, w.seed, first)
	for _, object := range []client.Object{role, definition} {
		before := object.GetUID()
		if err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil || object.GetUID() != before ||
			object.GetDeletionTimestamp() != nil {
			t.Errorf("%s: %v; UID %s became %s, deleted %v", object.GetName(), err, before, object.GetUID(), object.GetDeletionTimestamp())
		}
	}
	for _, secret := range sound { // restored, as the message says
		w.writeRecord(secret, secret.Data["record"])
	}
	w.edit(second, func(object *kubermaticv1.AddonInstallation) { object.Spec.Paused = false })
	w.expectShared(second, "")
	w.expectOwner("second", role, second)
	w.expectOwner("second", definition, second)
}

func (w *world) writeRecord(secret corev1.Secret, record []byte) {
	w.t.Helper()
	secret.Data, secret.ResourceVersion = maps.Clone(secret.Data), ""
	secret.Data["record"] = record
	expect.Update(w.t, w.seed, &secret)
}
