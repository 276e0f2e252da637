package addoninstallation_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/test/expect"
)

// TestDamagedRecordHoldsNothingUp fails if an unreadable newest record blocks an installation forever (Record.Next
// without Skipped: the next revision has its number), or if the record before it counts as the cluster's state
// (IsComplete without Skipped).
func TestDamagedRecordHoldsNothingUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.publish("damaged", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"}, offered{version: "2.0.0"})
	object := w.install("damaged", "1.0.0")
	w.expectInstalled(object, "1.0.0", "2.0.0")
	w.want(object, "2.0.0")
	w.expectInstalled(object, "2.0.0", "")

	var heads corev1.SecretList
	owner := ownership.Owner{ClusterUID: w.cluster.UID, Installation: "damaged"}
	if err := w.seed.List(t.Context(), &heads, client.InNamespace(w.namespace), client.MatchingLabels{
		kubermaticv1.LabelInstallation: owner.ID(), revision.LabelRevision: "2",
	}); err != nil || len(heads.Items) != 1 {
		t.Fatalf("%d records of revision 2, %v", len(heads.Items), err)
	}
	heads.Items[0].Data["record"] = []byte("spoilt")
	expect.Update(t, w.seed, &heads.Items[0])
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: object.Spec.TargetNamespace, Name: "settings"}}
	expect.Delete(t, w.seed, settings)
	w.edit(object, func(object *kubermaticv1.AddonInstallation) {
		object.Annotations = map[string]string{kubermaticv1.AnnotationReconcileAt: "now"}
	})
	w.expectEvent(kubermaticv1.EventRecordDamaged, object, "revision 2", heads.Items[0].Name, "digest", "on top of revision 1")
	w.expectInstalled(object, "2.0.0", "")
	w.want(object, "")
	w.expectInstalled(object, "2.0.0", "")
}

// If no record of an installation is readable, the installation is not removed, since its objects are unknown, and it
// is released if all objects have to stay. It fails if leave needs a readable record first (f.damaged taken out of it),
// and, for the first half, if damage counts as "nothing was applied".
func TestDamagedRecordsAreOrphaned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := w.startUntil()
	t.Cleanup(stop)
	w.publish("unreadable", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	object := w.install("unreadable", "")
	w.expectInstalled(object, "1.0.0", "")
	before := uids(w.configMaps(object.Spec.TargetNamespace))
	stop()

	owner := ownership.Owner{ClusterUID: w.cluster.UID, Installation: object.Name}
	ours := []client.ListOption{client.InNamespace(w.namespace), client.MatchingLabels{kubermaticv1.LabelInstallation: owner.ID()}}
	var records corev1.SecretList
	if err := w.seed.List(t.Context(), &records, ours...); err != nil || len(records.Items) == 0 {
		t.Fatalf("%d records, %v", len(records.Items), err)
	}
	for i := range records.Items {
		records.Items[i].Data["record"] = []byte("spoilt")
		expect.Update(t, w.seed, &records.Items[i])
	}
	w.delete(object)
	w.start()
	message := w.expectSummary(object, "False", kubermaticv1.ReasonFailed, "digest")
	if !strings.Contains(message, "set deletionPolicy to Orphan") {
		t.Errorf("the way out is not told: %s", message)
	}
	w.edit(object, func(object *kubermaticv1.AddonInstallation) { object.Spec.DeletionPolicy = kubermaticv1.DeletionOrphan })
	expect.Gone(t, w.seed, object)
	if diff := cmp.Diff(before, uids(w.configMaps(object.Spec.TargetNamespace))); diff != "" {
		t.Errorf("UIDs (-before +after):\n%s", diff)
	}
	if err := w.seed.List(t.Context(), &records, ours...); err != nil || len(records.Items) > 0 {
		t.Errorf("%d records are left, %v", len(records.Items), err)
	}
}

// A user with rights on Secrets in the cluster namespace writes a record of a newer revision. It is reported and
// ignored, and the installation continues with a higher number. It fails if a record is accepted by its name and labels
// (1e23548 decodes it).
func TestForgedRecordHoldsNothingUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := w.startUntil()
	t.Cleanup(stop)
	w.publish("forged", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"}, offered{version: "2.0.0"})
	object := w.install("forged", "1.0.0")
	w.expectInstalled(object, "1.0.0", "2.0.0")
	stop()

	owner := ownership.Owner{ClusterUID: w.cluster.UID, Installation: "forged"}
	var head corev1.Secret
	name := "addon-" + owner.LongID() + "-"
	expect.Get(t, w.seed, client.ObjectKey{Namespace: w.namespace, Name: name + "1"}, &head)
	head.ObjectMeta = metav1.ObjectMeta{Namespace: w.namespace, Name: name + "9", Labels: head.Labels, OwnerReferences: head.OwnerReferences}
	expect.Create(t, w.seed, &head)
	w.start()
	w.expectEvent(kubermaticv1.EventRecordDamaged, object, "revision 9", name+"9", "not sealed", "on top of revision 1")
	w.want(object, "2.0.0")
	w.expectInstalled(object, "2.0.0", "")
	if err := w.seed.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name + "10"}, &head); err != nil {
		t.Error(err)
	}
}

// TestRecordThatWasDeletedIsRecreated fails if a reconciliation continues with a record that was deleted after the
// previous one (amend without a check of its existence).
func TestRecordThatWasDeletedIsRecreated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.publish("deleted", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	object := w.install("deleted", "")
	w.expectInstalled(object, "1.0.0", "")
	before := uids(w.configMaps(object.Spec.TargetNamespace))
	w.dropRecords()
	w.edit(object, func(object *kubermaticv1.AddonInstallation) { // which has to be recorded
		object.Spec.ReconcileStrategy = kubermaticv1.ReconcileOnce
		object.Annotations = map[string]string{kubermaticv1.AnnotationReconcileAt: "now"}
	})
	expect.Eventually(t, expect.Patience, w.recordsBelong)
	w.expectInstalled(object, "1.0.0", "")
	if diff := cmp.Diff(before, uids(w.configMaps(object.Spec.TargetNamespace))); diff != "" {
		t.Errorf("UIDs (-before +after):\n%s", diff)
	}
}
