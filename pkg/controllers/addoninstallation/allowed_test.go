package addoninstallation

import (
	"testing"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/install/hooks"
	"github.com/trellis-addons/trellis/pkg/install/revision"
)

// AC40: A restriction stops new revisions of Custom add-ons, but none that is applied or under way. It fails if allowed
// does not look at the catalogue's type or at hooks, or stops a revision that is applied or under way.
func TestRestrictionHoldsForNewRevisionsOfCustomAddons(t *testing.T) {
	for _, test := range []struct {
		why     string
		change  func(*facts)
		refused bool
	}{
		{"Custom", func(*facts) {}, true},
		{"Core", func(f *facts) { f.choice.Core = true }, false},
		{"unchanged", func(f *facts) { f.run.Decision.Do = revision.Keep }, false},
		{"under way", func(f *facts) { f.run.Decision.Do = revision.CarryOn }, false},
		{"another target", func(f *facts) { f.installation.Spec.TargetNamespace = "shop" }, false},
		{"a hook", func(f *facts) {
			f.installation.Spec.TargetNamespace = "shop"
			f.run.Hooks = []hooks.Hook{{Object: []byte(`{"kind": "Job", "metadata": {"name": "a", "namespace": "kube-system"}}`)}}
		}, true},
	} {
		f := &facts{installation: &kubermaticv1.AddonInstallation{}}
		f.installation.Spec.TargetNamespace = "kube-system"
		test.change(f)
		reconciler := &Reconciler{Dependencies: Dependencies{Options: Options{Restrictions: catalogue.Restrictions{KubeNamespaces: true}}}}
		stalled := reconciler.allowed(t.Context(), f)
		refused := stalled.Is(loop.Stalled)
		if refused != test.refused || refused && (stalled.Reason != "NotAllowed" || stalled.Condition != "Rendered") {
			t.Errorf("%s: got %+v, want refused: %t", test.why, stalled, test.refused)
		}
	}
}
