package addoninstallation_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/release"
)

// Red when a newest record that can't be read holds an installation up for ever (nextRevision without Skipped: the next revision has
// its number), or when the record before it is taken for what the cluster has (settled without Skipped).
func TestDamagedRecordHoldsNothingUp(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.publish("damaged", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"}, offered{version: "2.0.0"})
	object := w.install("damaged", "1.0.0")
	w.expectInstalled(object, "1.0.0", "2.0.0")
	w.want(object, "2.0.0")
	w.expectInstalled(object, "2.0.0", "")

	var heads corev1.SecretList
	owner := apply.Owner{ClusterUID: w.cluster.UID, Installation: "damaged"}
	if err := w.seed.List(t.Context(), &heads, client.InNamespace(w.namespace), client.MatchingLabels{
		kubermaticv1.LabelInstallation: owner.ID(), release.LabelRevision: "2",
	}); err != nil || len(heads.Items) != 1 {
		t.Fatalf("%d records of revision 2, %v", len(heads.Items), err)
	}
	heads.Items[0].Data["record"] = []byte("spoilt")
	if err := w.seed.Update(t.Context(), &heads.Items[0]); err != nil {
		t.Fatal(err)
	}
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: object.Spec.TargetNamespace, Name: "settings"}}
	if err := w.seed.Delete(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	w.edit(object, func(object *kubermaticv1.AddonInstallation) {
		object.Annotations = map[string]string{kubermaticv1.AnnotationReconcileAt: "now"}
	})
	w.expectEvent(kubermaticv1.EventRecordDamaged, object, "the record of revision 2 can't be read: everything is applied anew on top of "+
		"revision 1, and objects that only the damaged record knew stay where they are")
	w.expectInstalled(object, "2.0.0", "")
	w.want(object, "")
	w.expectInstalled(object, "2.0.0", "")
}
