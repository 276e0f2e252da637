package coreaddon

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// TestInstallationChanged holds which updates of installations wake a pass: those of somebody's
// never do, however many a cluster has.
func TestInstallationChanged(t *testing.T) {
	ready := func(i *v1.AddonInstallation) {
		i.Status.Conditions = []metav1.Condition{{Type: v1.ConditionReady, Status: metav1.ConditionTrue}}
	}
	core := func(i *v1.AddonInstallation) { i.Spec.CoreAddon = true }
	labelled := func(i *v1.AddonInstallation) { i.Labels = map[string]string{v1.LabelManagedBy: v1.ManagedByCoreAddons} }
	protected := func(i *v1.AddonInstallation) { i.Finalizers = []string{v1.FinalizerCoreProtection} }
	edited := func(i *v1.AddonInstallation) { i.Generation++ }
	for _, test := range []struct {
		why           string
		before, after []func(*v1.AddonInstallation)
		want          bool
	}{
		{"somebody's gets ready", nil, []func(*v1.AddonInstallation){ready}, false},
		{"somebody's is edited", nil, []func(*v1.AddonInstallation){edited}, false},
		{"a core add-on gets ready", []func(*v1.AddonInstallation){core}, []func(*v1.AddonInstallation){core, ready}, true},
		{"a core add-on's copy of nothing", []func(*v1.AddonInstallation){core}, []func(*v1.AddonInstallation){core}, false},
		{"the label is taken off", []func(*v1.AddonInstallation){labelled}, nil, true},
		{"the protection is put on", nil, []func(*v1.AddonInstallation){protected}, true},
	} {
		t.Run(test.why, func(t *testing.T) {
			before, after := &v1.AddonInstallation{}, &v1.AddonInstallation{}
			for _, change := range test.before {
				change(before)
			}
			for _, change := range test.after {
				change(after)
			}
			if got := installationChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != test.want {
				t.Errorf("a pass is woken: %v, want %v", got, test.want)
			}
		})
	}
}
