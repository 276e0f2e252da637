package addoninstallation_test

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// restoreTo restores an installation to an earlier state, with the records of that time and no later ones.
func (w *world) restoreTo(before *kubermaticv1.AddonInstallation, records []corev1.Secret) {
	w.t.Helper()
	w.dropRecords()
	for i := range records {
		again := records[i].DeepCopy()
		again.ResourceVersion, again.UID = "", ""
		w.create(again)
	}
	object := before.DeepCopy()
	w.edit(object, func(object *kubermaticv1.AddonInstallation) { object.Spec = before.Spec })
	object.Status = before.Status
	expect.UpdateStatus(w.t, w.seed, object)
}

// awaitNextSecond: API servers record times of writes in seconds.
func awaitNextSecond(t *testing.T) {
	t.Helper()
	begun := time.Now().Unix()
	expect.Eventually(t, expect.Patience, func() error {
		if time.Now().Unix() == begun {
			return errors.New("it is still the same second")
		}
		return nil
	})
}

// TestARestoredSeedTakesNoUpdateBackUnasked fails if an installation whose seed was restored from before an update
// shows no drift while the update's values stay in the user cluster, where every field is still ours; if the update is
// reverted without a request; if it is not on request; and if that is reported again afterwards.
func TestARestoredSeedTakesNoUpdateBackUnasked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := w.startUntil()
	t.Cleanup(func() { stop() })
	w.publish("restored", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"}, offered{version: "2.0.0"})
	object := w.install("restored", "1.0.0")
	w.expectInstalled(object, "1.0.0", "2.0.0")
	before, records := object.DeepCopy(), w.recordSecrets()

	awaitNextSecond(t)
	w.want(object, "2.0.0")
	w.expectInstalled(object, "2.0.0", "")
	stop()
	w.restoreTo(before, records)
	awaitNextSecond(t)
	stop = w.startUntil()
	w.expectDrifted(object, "True", kubermaticv1.ReasonNewerContent)
	w.expectChoice(object, kubermaticv1.ReasonReady, "2.0.0", "2.0.0")
	w.expectNoEvent(kubermaticv1.EventRepaired)

	w.edit(object, func(object *kubermaticv1.AddonInstallation) {
		object.Annotations = map[string]string{kubermaticv1.AnnotationReconcileAt: "now"}
	})
	w.expectDrifted(object, "False", kubermaticv1.ReasonRepaired)
	w.expectInstalled(object, "1.0.0", "2.0.0")
	w.expectEvent(kubermaticv1.EventRepaired, object, "ConfigMap "+object.Spec.TargetNamespace+"/settings")
	w.edit(object, func(object *kubermaticv1.AddonInstallation) {
		object.Annotations = map[string]string{kubermaticv1.AnnotationReconcileAt: "again"}
	})
	w.expectDrifted(object, "False", kubermaticv1.ReasonNoDrift)
}

// expectDrifted waits for status and reason of Drifted.
func (w *world) expectDrifted(object *kubermaticv1.AddonInstallation, status, reason string) {
	w.t.Helper()
	expect.HasCondition(w.t, w.seed, object, expect.Is(kubermaticv1.ConditionDrifted, status, reason))
}
