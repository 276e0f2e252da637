package addoninstallation_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
	kit "github.com/trellis-addons/trellis/test/world"
)

// atTheEnd is a version with that value of onClusterDeletion.
func (w *world) atTheEnd(choice kubermaticv1.OnClusterDeletion) kubermaticv1.AddonVersion {
	made := w.version(offered{version: "1.0.0"})
	made.Template.OnClusterDeletion = choice
	return made
}

// offerEnds offers add-ons removed, whose installations are removed with their cluster, cni, the same with a slot and
// Core, and left, which sets nothing.
func (w *world) offerEnds() {
	w.t.Helper()
	removed := []kubermaticv1.AddonVersion{w.atTheEnd(kubermaticv1.ClusterDeletionRemove)}
	w.offer("removed", kubermaticv1.CatalogueCustom, removed...)
	w.publishAddon(kubermaticv1.CatalogueCore, kubermaticv1.Addon{Name: "cni", Slot: kubermaticv1.SlotCNI, Versions: removed})
	w.offer("left", kubermaticv1.CatalogueCustom, w.atTheEnd(""))
}

// holdCluster makes a Cluster stay during its deletion, as controllers that clean up do; without finalizers it is
// released.
func (w *world) holdCluster(object client.Object, finalizers ...string) {
	w.t.Helper()
	expect.Eventually(w.t, expect.Patience, func() error {
		if err := w.seed.Get(w.t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return client.IgnoreNotFound(err)
		}
		object.SetFinalizers(finalizers)
		return w.seed.Update(w.t.Context(), object)
	})
}

// endCluster deletes a Cluster that a foreign finalizer holds until the end of the test.
func (w *world) endCluster(object client.Object) {
	w.t.Helper()
	w.holdCluster(object, finalizerOfTest)
	w.delete(object)
	w.t.Cleanup(func() {
		object.SetFinalizers(nil)
		free := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		_ = w.seed.Patch(context.WithoutCancel(w.t.Context()), object, free)
	})
}

// holdSettings makes an object of the user cluster stay after its deletion; false releases it.
func (w *world) holdSettings(object *kubermaticv1.AddonInstallation, isHeld bool) {
	w.t.Helper()
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: object.Spec.TargetNamespace, Name: "settings"}}
	expect.Eventually(w.t, expect.Patience, func() error {
		if err := w.seed.Get(w.t.Context(), client.ObjectKeyFromObject(settings), settings); err != nil {
			if isHeld {
				return err
			}
			return client.IgnoreNotFound(err)
		}
		settings.Finalizers = nil
		if isHeld {
			settings.Finalizers = []string{finalizerOfTest}
		}
		return w.seed.Update(w.t.Context(), settings)
	})
}

// expectEnded waits until an installation that is not being deleted has no objects left, in its status and in the user
// cluster.
func (w *world) expectEnded(objects ...*kubermaticv1.AddonInstallation) {
	w.t.Helper()
	for _, object := range objects {
		expect.Object(w.t, w.seed, object, func(object *kubermaticv1.AddonInstallation) error {
			state := object.Status
			if state.LastApplied != nil || state.Version != "" || state.OnClusterDeletion != "" {
				return fmt.Errorf("%s has something: %+v", object.Name, state)
			}
			for _, earned := range []string{kubermaticv1.ConditionApplied, kubermaticv1.ConditionHealthy} {
				if meta.FindStatusCondition(state.Conditions, earned) != nil {
					return fmt.Errorf("%s is still said to be %s", object.Name, earned)
				}
			}
			return expect.Condition(object, kubermaticv1.ConditionReady, "False", kubermaticv1.ReasonClusterNotReady)
		})
		if w.has(&corev1.Namespace{}, "", object.Spec.TargetNamespace) && w.installed(object) != "" {
			w.t.Errorf("%s has objects in the user cluster", object.Name)
		}
	}
}

// deletedSettings are the namespaces of deleted settings, in the order of calls.
func deletedSettings(calls []string) (namespaces []string) {
	for _, call := range calls {
		path, isDeletion := strings.CutPrefix(call, "DELETE /api/v1/namespaces/")
		if namespace, isOne := strings.CutSuffix(path, "/configmaps/settings"); isDeletion && isOne {
			namespaces = append(namespaces, namespace)
		}
	}
	return slices.Compact(namespaces)
}

// TestAddonsAreRemovedWhileTheirClusterGoes fails if objects to remove are not removed (part returns LetGo), or in
// another order than in other removals (BeforeRemoval with false), if a protected core add-on stays, if released
// installations cause a call, or if the status or the records keep removed objects.
func TestAddonsAreRemovedWhileTheirClusterGoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	heard := w.overhear()
	w.offerEnds()
	cni := given.Installation(w.namespace, "cni", "cni", w.unique("cni"), given.NewNamespace, given.Core)
	cni.Finalizers = []string{kubermaticv1.FinalizerCoreProtection}
	w.create(cni)
	db, web, left := w.request("db", "removed", ""), w.request("web", "removed", "", "db"), w.request("left", "left", "", "db")
	w.start()
	for _, object := range []*kubermaticv1.AddonInstallation{cni, db, web, left} {
		w.expectInstalled(object, "1.0.0", "")
	}
	w.holdSettings(web, true)
	w.delete(cni) // it is protected, so it is not removed itself
	w.expectReady(cni, kubermaticv1.ReasonReady)
	heard.sinceThen()

	w.endCluster(w.cluster)
	w.expectReady(web, kubermaticv1.ReasonRemoving, "not removed yet")
	w.expectReady(db, kubermaticv1.ReasonWaitingForOrder, "removal", `installation "web"`)
	w.expectReady(cni, kubermaticv1.ReasonWaitingForOrder, "removal of installation")
	w.holdSettings(web, false)
	w.expectEnded(web, db, cni)
	for _, object := range []*kubermaticv1.AddonInstallation{web, db, cni} {
		expect.Gone(t, w.seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: object.Spec.TargetNamespace}})
		w.expectEvent(kubermaticv1.EventRemoved, object, w.cluster.Name)
	}
	calls := heard.sinceThen()
	if diff := cmp.Diff([]string{web.Spec.TargetNamespace, db.Spec.TargetNamespace, cni.Spec.TargetNamespace}, deletedSettings(calls)); diff != "" {
		t.Errorf("order of what was removed (-want +got):\n%s", diff)
	}
	if i := slices.IndexFunc(calls, func(call string) bool { return strings.Contains(call, left.Spec.TargetNamespace) }); i >= 0 {
		t.Errorf("what is let go got call %q", calls[i])
	}
	w.expectReady(left, kubermaticv1.ReasonClusterNotReady, "is being deleted")
	if w.installed(left) != "1.0.0" || left.Status.LastApplied == nil {
		t.Errorf("what is let go lost something: %+v", left.Status)
	}
	if records := w.recordSecrets(); len(records) != 1 {
		t.Errorf("there are %d records, want that of what is let go", len(records))
	}
	w.deleteAll(left, web, db)
	for _, object := range []*kubermaticv1.AddonInstallation{left, web, db} {
		expect.Gone(t, w.seed, object)
	}
	w.expectEvents(left, "Normal Applied")
}

// TestWhatIsLetGoGetsNoCall fails if an unset default, or LetGo, causes a call to a cluster that is being deleted, or
// if neighbours wait for an installation that deletionPolicy releases (projectDeletion without deletionReleased).
func TestWhatIsLetGoGetsNoCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	heard := w.overhear()
	w.offer("plain", kubermaticv1.CatalogueCustom, w.atTheEnd(""))
	w.offer("worded", kubermaticv1.CatalogueCustom, w.atTheEnd(kubermaticv1.ClusterDeletionLetGo))
	w.offer("removed", kubermaticv1.CatalogueCustom, w.atTheEnd(kubermaticv1.ClusterDeletionRemove))
	plain, worded, orphan := w.request("plain", "plain", ""), w.request("worded", "worded", ""), w.request("orphan", "removed", "")
	w.edit(orphan, func(object *kubermaticv1.AddonInstallation) { object.Spec.DeletionPolicy = kubermaticv1.DeletionOrphan })
	w.start()
	all := []*kubermaticv1.AddonInstallation{plain, worded, orphan}
	for _, object := range all {
		w.expectInstalled(object, "1.0.0", "")
	}
	heard.sinceThen()
	w.endCluster(w.cluster)
	for _, object := range all {
		w.expectReady(object, kubermaticv1.ReasonClusterNotReady, "is being deleted")
		if object.Status.OnClusterDeletion != "" {
			t.Errorf("neighbours wait for %s, which is let go", object.Name)
		}
	}
	for _, object := range all {
		w.delete(object)
		expect.Gone(t, w.seed, object)
		if w.installed(object) != "1.0.0" {
			t.Errorf("%s lost what it had", object.Name)
		}
	}
	if calls := heard.sinceThen(); len(calls) > 0 {
		t.Errorf("the user cluster got calls: %q", calls)
	}
}

// TestAPausedClusterIsNotWrittenWhileItGoes fails if a paused cluster is written to, also while it is being deleted.
func TestAPausedClusterIsNotWrittenWhileItGoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	heard := w.overhear()
	w.offerEnds()
	lives, goes := w.request("lives", "removed", ""), w.request("goes", "removed", "")
	w.start()
	w.expectInstalled(lives, "1.0.0", "")
	w.expectInstalled(goes, "1.0.0", "")
	w.cluster.Spec.Pause = true
	expect.Update(t, w.seed, w.cluster)
	w.expectReady(lives, kubermaticv1.ReasonPaused)
	w.expectReady(goes, kubermaticv1.ReasonPaused)
	heard.sinceThen()
	w.endCluster(w.cluster)
	w.expectReady(lives, kubermaticv1.ReasonClusterNotReady, "is being deleted")
	w.delete(goes)
	expect.Gone(t, w.seed, goes)
	if calls := heard.sinceThen(); len(calls) > 0 {
		t.Errorf("a paused user cluster got calls: %q", calls)
	}
}

// TestADeadAPIServerIsNotWaitedFor fails if a removal waits for an API server that does not answer (lostWhileGoing
// false, or isCutOff), or if it does not continue when the server answers again in time.
func TestADeadAPIServerIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gate, _ := w.gated()
	w.goingTime = 2 * time.Minute
	w.offerEnds()
	lives, goes, late := w.request("lives", "removed", ""), w.request("goes", "removed", ""), w.request("late", "removed", "")
	w.start()
	for _, object := range []*kubermaticv1.AddonInstallation{lives, goes, late} {
		w.expectInstalled(object, "1.0.0", "")
	}
	gate.Shut()
	w.endCluster(w.cluster)
	w.delete(goes)
	expect.Gone(t, w.seed, goes)
	w.expectEvent(kubermaticv1.EventLeftBehind, goes, w.cluster.Name, "API server does not answer")
	w.expectReady(lives, kubermaticv1.ReasonClusterNotReady, "API server")
	w.delete(late)
	expect.Gone(t, w.seed, late)
	if w.installed(late) != "1.0.0" || lives.Status.OnClusterDeletion != kubermaticv1.ClusterDeletionRemove {
		t.Errorf("something was removed: %+v", lives.Status)
	}
	expect.NoError(t, gate.Open(t.Context()))
	w.expectEnded(lives)
}

// TestALostCallLetsNothingGo fails if an installation is released because its API server does not answer for a moment
// (isGivenUp at once).
func TestALostCallLetsNothingGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gate, _ := w.gated()
	w.offerEnds()
	lives, goes := w.request("lives", "removed", ""), w.request("goes", "removed", "")
	w.start()
	w.expectInstalled(lives, "1.0.0", "")
	w.expectInstalled(goes, "1.0.0", "")
	gate.Shut()
	w.endCluster(w.cluster)
	w.delete(goes)
	w.expectReady(goes, kubermaticv1.ReasonClusterUnreachable)
	w.expectReady(lives, kubermaticv1.ReasonClusterUnreachable)
	expect.NoError(t, gate.Open(t.Context()))
	w.expectEnded(lives)
	expect.Gone(t, w.seed, goes)
	if w.installed(goes) != "" {
		t.Error("it was let go, and what it had is left")
	}
	w.expectNoEvent(kubermaticv1.EventLeftBehind)
}

// TestARemovalThatNeverEndsHoldsNothing fails if an endless removal holds an installation for longer than allowed
// (timeToGo without an end), or for less; if it uses up the time of those that wait for it (removalTimeout without its
// end); if the removal of an installation that is not being deleted continues; or if that is not reported, or reported
// twice, also for finalizers of others.
func TestARemovalThatNeverEndsHoldsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.clock, w.goingTime = kit.RunningClock(t), 30*time.Minute
	w.offerEnds()
	lives, goes := w.request("lives", "removed", ""), w.request("goes", "removed", "")
	waits := w.request("waits", "removed", "")
	w.dependOn(lives, "waits")
	w.start()
	for _, object := range []*kubermaticv1.AddonInstallation{waits, lives, goes} {
		w.expectInstalled(object, "1.0.0", "")
	}
	for _, object := range []*kubermaticv1.AddonInstallation{lives, goes} {
		w.holdSettings(object, true)
		defer w.holdSettings(object, false)
	}
	const others = "example.com/kept"
	w.edit(goes, func(object *kubermaticv1.AddonInstallation) { object.Finalizers = append(object.Finalizers, others) })
	w.endCluster(w.cluster)
	w.delete(goes)
	w.expectReady(goes, kubermaticv1.ReasonRemoving, "not removed yet")
	w.expectReady(lives, kubermaticv1.ReasonRemoving, "not removed yet")
	w.clock.Step(w.goingTime / 3)
	w.afterAnother(waits)
	w.expectEnded(waits)
	w.expectEvent(kubermaticv1.EventOrderGivenUp, waits, fmt.Sprintf("after %s although", w.goingTime/3), "removal of installation", lives.Name)
	w.clock.Step(w.goingTime / 3)
	w.afterAnother(goes)
	w.expectReady(goes, kubermaticv1.ReasonRemovalBlocked)
	if !slices.Contains(goes.Finalizers, kubermaticv1.FinalizerCleanupInstallation) {
		t.Error("it was let go when two thirds of the time were over")
	}
	w.clock.Step(w.goingTime / 3)
	w.afterAnother(goes)
	expect.Object(t, w.seed, goes, func(object *kubermaticv1.AddonInstallation) error {
		if !slices.Equal(object.Finalizers, []string{others}) {
			return fmt.Errorf("finalizers %q hold it", object.Finalizers)
		}
		return nil
	})
	w.annotate(goes, kubermaticv1.AnnotationReconcileAt, "again") // a reconciliation of an installation that others hold
	w.expectReady(lives, kubermaticv1.ReasonClusterNotReady, "were not removed in time")
	for _, object := range []*kubermaticv1.AddonInstallation{lives, goes} {
		w.expectEvent(kubermaticv1.EventLeftBehind, object, w.cluster.Name, "were not removed in time")
	}
	w.annotate(lives, kubermaticv1.AnnotationReconcileAt, "again")
	w.holdSettings(lives, false)
	w.delete(lives)
	expect.Gone(t, w.seed, lives)
	if !w.has(&corev1.Namespace{}, "", lives.Spec.TargetNamespace) {
		t.Error("something was removed when the time was over")
	}
	w.expectLeftOnce(lives)
	w.expectLeftOnce(goes)
	w.edit(goes, func(object *kubermaticv1.AddonInstallation) { object.Finalizers = nil })
	expect.Gone(t, w.seed, goes)
}

// expectLeftOnce checks that leftovers of an installation were reported once.
func (w *world) expectLeftOnce(object *kubermaticv1.AddonInstallation) {
	w.t.Helper()
	count := 0
	for _, reported := range w.events(object) {
		if reported == "Warning "+kubermaticv1.EventLeftBehind {
			count++
		}
	}
	if count != 1 {
		w.t.Errorf("it was told %d times that something of %s is left", count, object.Name)
	}
}

// TestWhatCannotBeReadWhileItsClusterGoesIsReported fails if an unreadable record ends a removal without a report (part
// without deletionUnreadable), if neighbours wait for that, or if it is reported twice, or for an installation without a
// record, which is removed normally.
func TestWhatCannotBeReadWhileItsClusterGoesIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.offerEnds()
	lives, goes := w.request("lives", "removed", ""), w.request("goes", "removed", "")
	none := w.request("none", "removed", "")
	stop := w.startUntil()
	for _, object := range []*kubermaticv1.AddonInstallation{lives, goes, none} {
		w.expectInstalled(object, "1.0.0", "")
	}
	stop()
	withoutRecord := ownership.Owner{ClusterUID: w.cluster.UID, Installation: none.Name}
	for _, record := range w.recordSecrets() {
		var err error
		if record.Labels[kubermaticv1.LabelInstallation] == withoutRecord.ID() {
			err = w.seed.Delete(t.Context(), &record)
		} else {
			record.Data["record"] = []byte("spoilt")
			err = w.seed.Update(t.Context(), &record)
		}
		expect.NoError(t, err)
	}
	w.endCluster(w.cluster)
	w.delete(goes)
	w.delete(none)
	w.start()
	expect.Gone(t, w.seed, goes)
	expect.Gone(t, w.seed, none)
	for _, object := range []*kubermaticv1.AddonInstallation{lives, goes} {
		w.expectEvent(kubermaticv1.EventLeftBehind, object, w.cluster.Name, "record")
	}
	expect.Object(t, w.seed, lives, func(object *kubermaticv1.AddonInstallation) error {
		if object.Status.OnClusterDeletion != "" {
			return errors.New("neighbours wait for it")
		}
		return expect.Condition(object, kubermaticv1.ConditionReady, "False", kubermaticv1.ReasonClusterNotReady)
	})
	w.delete(lives)
	expect.Gone(t, w.seed, lives)
	w.expectLeftOnce(lives)
	if reported := w.events(none); slices.Contains(reported, "Warning "+kubermaticv1.EventLeftBehind) {
		t.Errorf("of what has no record it is told %q", reported)
	}
	for _, object := range []*kubermaticv1.AddonInstallation{lives, goes} {
		if w.installed(object) != "1.0.0" {
			t.Errorf("something of %s was removed", object.Name)
		}
	}
}

// TestARestartGoesOnWithWhatGoes fails if a manager that starts during a removal does not continue it, uses another
// order, or a wrong time of the deletion.
func TestARestartGoesOnWithWhatGoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	heard := w.overhear()
	w.offerEnds()
	db, web := w.request("db", "removed", ""), w.request("web", "removed", "", "db")
	stop := w.startUntil()
	w.expectInstalled(db, "1.0.0", "")
	w.expectInstalled(web, "1.0.0", "")
	w.holdSettings(web, true)
	w.endCluster(w.cluster)
	w.expectReady(web, kubermaticv1.ReasonRemoving, "not removed yet")
	w.expectReady(db, kubermaticv1.ReasonWaitingForOrder)
	stop()
	w.start()
	w.afterAnother(web)
	w.afterAnother(db)
	if w.installed(db) != "1.0.0" {
		t.Error("what is depended on went first")
	}
	w.holdSettings(web, false)
	w.expectEnded(web, db)
	if diff := cmp.Diff([]string{web.Spec.TargetNamespace, db.Spec.TargetNamespace}, deletedSettings(heard.sinceThen())); diff != "" {
		t.Errorf("order of what was removed (-want +got):\n%s", diff)
	}
}

// TestASharedNamespaceGoesWithTheLast fails if a removed installation keeps a namespace that it shared (others with
// those that have nothing), or created (nameOf with them), or if a released one loses its own.
func TestASharedNamespaceGoesWithTheLast(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.offerEnds()
	second := w.content("1.0.0", kubermaticv1.MethodGoTemplate, "second", map[string]string{
		"all.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: second}\n",
	})
	second.Template.OnClusterDeletion = kubermaticv1.ClusterDeletionRemove
	w.offer("second", kubermaticv1.CatalogueCustom, second)
	into := func(name, addon, namespace string) *kubermaticv1.AddonInstallation {
		object := given.Installation(w.namespace, name, addon, namespace, given.NewNamespace)
		w.create(object)
		return object
	}
	shared, kept := w.unique("shared"), w.unique("kept")
	w.start()
	made := into("a", "removed", shared)
	w.ready(made) // it creates the namespace, and is not the last one removed
	going := []*kubermaticv1.AddonInstallation{made, into("b", "second", shared), into("c", "second", kept)}
	left := into("d", "left", kept)
	for _, object := range append(going, left) {
		w.ready(object)
	}
	w.endCluster(w.cluster)
	expect.Gone(t, w.seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shared}})
	expect.Gone(t, w.seed, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: kept, Name: "second"}})
	w.expectReady(left, kubermaticv1.ReasonClusterNotReady)
	if w.installed(left) != "1.0.0" {
		t.Error("what is let go lost its objects")
	}
}

// TestTheEndIsOnRecordWithoutAWrite fails if an edit of onClusterDeletion alone renders or writes the add-on again, or
// does not reach the installed one.
func TestTheEndIsOnRecordWithoutAWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	heard := w.overhear()
	made := &renderings{}
	w.renderers = bothMethods()
	for method, one := range w.renderers {
		w.renderers[method] = countedObjects{one, made}
	}
	w.offer("plain", kubermaticv1.CatalogueCustom, w.atTheEnd(""))
	object := w.request("plain", "plain", "")
	w.start()
	w.expectInstalled(object, "1.0.0", "")
	applied, rendered := object.Status.LastApplied, made.objects.Load()
	for _, choice := range []kubermaticv1.OnClusterDeletion{
		kubermaticv1.ClusterDeletionRemove, kubermaticv1.ClusterDeletionLetGo, kubermaticv1.ClusterDeletionRemove,
	} {
		heard.writesSinceThen()
		w.offer("plain", kubermaticv1.CatalogueCustom, w.atTheEnd(choice))
		expect.Object(t, w.seed, object, func(object *kubermaticv1.AddonInstallation) error {
			is, want := object.Status.OnClusterDeletion, choice == kubermaticv1.ClusterDeletionRemove
			if (is == kubermaticv1.ClusterDeletionRemove) != want {
				return fmt.Errorf("the status says %q, wanted %s", is, choice)
			}
			return nil
		})
		if writes := heard.writesSinceThen(); len(writes) > 0 {
			t.Errorf("%s was written to the user cluster: %q", choice, writes)
		}
	}
	if diff := cmp.Diff(applied, object.Status.LastApplied); diff != "" || made.objects.Load() != rendered {
		t.Errorf("it was rendered or applied again (%s): %s", made, diff)
	}
	w.withdraw("plain") // the record counts
	w.expectReady(object, kubermaticv1.ReasonWithdrawn)
	w.endCluster(w.cluster)
	w.expectEnded(object)
}

// TestAClusterOfATeamTakesItsOwnAlong fails if a Cluster of Cluster API differs from KKP's, or if another one in its
// namespace loses or gets a write.
func TestAClusterOfATeamTakesItsOwnAlong(t *testing.T) {
	t.Parallel()
	m := newTeam(t)
	into := m.unique("along")
	m.publishInto("web", into, m.atTheEnd(kubermaticv1.ClusterDeletionRemove))
	one := m.add("one", "both")
	m.add("two", "elsewhere")
	m.start()
	goes, stays := m.requestIn("one", "one-web", "web"), m.requestIn("two", "two-web", "web", "two-db")
	base := m.requestIn("two", "two-db", "web")
	m.edit(base, func(object *kubermaticv1.AddonInstallation) {
		object.Spec.TargetNamespace, object.Spec.CreateNamespace = into+"-db", true
	})
	for _, object := range []*kubermaticv1.AddonInstallation{goes, base, stays} {
		m.ready(object)
	}
	before, records := map[string]string{stays.Name: stays.ResourceVersion, base.Name: base.ResourceVersion}, m.records()
	settings := &corev1.ConfigMap{}
	expect.Get(t, m.elsewhere(), client.ObjectKey{Namespace: into, Name: "settings"}, settings)
	was := m.owner + " " + string(one.GetUID())
	m.endCluster(one)
	m.expectEnded(goes)
	if left := m.records()[was]; len(left) > 0 || m.has(&corev1.ConfigMap{}, into, "settings") {
		t.Errorf("something is left: %v", left)
	}
	m.holdCluster(one)
	expect.Gone(t, m.seed, one)
	for _, object := range []*kubermaticv1.AddonInstallation{stays, base} {
		if err := m.seed.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil || object.ResourceVersion != before[object.Name] {
			t.Errorf("neighbour %s was written: %v", object.Name, err)
		}
	}
	delete(records, was)
	if diff := cmp.Diff(records, m.records()); diff != "" {
		t.Errorf("records of the neighbour (-before +after):\n%s", diff)
	}
	found := &corev1.ConfigMap{}
	if err := m.elsewhere().Get(t.Context(), client.ObjectKeyFromObject(settings), found); err != nil || found.ResourceVersion != settings.ResourceVersion {
		t.Errorf("an object of the neighbour was written: %v", err)
	}
}
