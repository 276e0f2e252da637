package addoninstallation_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// F12: No webhook is called here. It fails if an installation beyond the share of its cluster is reconciled, if older
// ones or a Core add-on are held, or if it does not continue once there is space.
func TestWhatIsBeyondTheShareOfAClusterIsNotWorkedOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish("web", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	w.publish("network", kubermaticv1.CatalogueCore, offered{version: "1.0.0"})
	first := w.request("first", "web", "")
	large := &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"a":%q}`, strings.Repeat("x", 510<<10))}
	var last *kubermaticv1.AddonInstallation
	for at := range 33 { // of 510 KiB: the last is beyond 16 MiB
		last = &kubermaticv1.AddonInstallation{}
		last.Namespace, last.Name = w.namespace, fmt.Sprintf("l%02d", at)
		last.Spec = kubermaticv1.AddonInstallationSpec{
			AddonRef: kubermaticv1.AddonReference{Name: "web"}, TargetNamespace: w.unique("large"), Paused: true, Values: large,
		}
		w.create(last)
	}
	late := w.request("z-late", "web", "")
	core := &kubermaticv1.AddonInstallation{}
	core.Namespace, core.Name = w.namespace, "z-network"
	core.Spec = kubermaticv1.AddonInstallationSpec{
		AddonRef: kubermaticv1.AddonReference{Name: "network"}, TargetNamespace: w.unique("network"), CreateNamespace: true, CoreAddon: true,
	}
	w.create(core)
	w.start()
	w.expectReady(first, kubermaticv1.ReasonReady)
	w.expectReady(core, kubermaticv1.ReasonReady)
	w.expectReady(late, kubermaticv1.ReasonLimitExceeded, "at most 16384 KiB are allowed", "delete installations")
	if late.Status.LastApplied != nil {
		t.Errorf("it was applied: %+v", late.Status.LastApplied)
	}
	w.edit(last, func(object *kubermaticv1.AddonInstallation) { object.Spec.Values = nil })
	w.annotate(late, kubermaticv1.AnnotationReconcileAt, "now")
	w.expectReady(late, kubermaticv1.ReasonReady)
}
