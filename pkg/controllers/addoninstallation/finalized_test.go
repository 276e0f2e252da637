package addoninstallation_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// TestRenderedNamesWhoseFinalizersAreLeftOut fails if finalizers are removed without a message, also in a process that
// does not render again, and if the message is about a version without any.
func TestRenderedNamesWhoseFinalizersAreLeftOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := w.startUntil()
	const held = "{apiVersion: v1, kind: ConfigMap, metadata: {name: held, finalizers: [example.com/hold]}}\n---\n"
	w.commit("held-one", held+manifestOf("held", 1))
	w.commit("held-two", manifestOf("held", 1))
	w.publishFrom("finalized", kubermaticv1.CatalogueCustom, "held-one", "held-two")
	object := w.install("finalized", "1.0.0")
	says := func(text string) {
		t.Helper()
		expect.Object(t, w.seed, object.DeepCopy(), func(object *kubermaticv1.AddonInstallation) error {
			if err := expect.Condition(object, kubermaticv1.ConditionReady, "True", kubermaticv1.ReasonReady); err != nil {
				return err
			}
			message := meta.FindStatusCondition(object.Status.Conditions, kubermaticv1.ConditionRendered).Message
			if object.Status.Version != object.Spec.AddonRef.Version || !strings.Contains(message, text) || (text == "") != (message == "") {
				return fmt.Errorf("version %q says %q, want %q", object.Status.Version, message, text)
			}
			return nil
		})
	}
	const named = "finalizers in manifests are left out, since they would delay removals: ConfigMap held"
	says(named)
	stop()
	w.start()
	w.lookAgain(object)
	says(named)
	w.edit(object, func(object *kubermaticv1.AddonInstallation) { object.Spec.AddonRef.Version = "2.0.0" })
	says("")
}
