package coreaddon

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// TestInstallationChanged checks which updates of installations start a reconciliation: those of users' installations
// never do, for any number of them.
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
			if got := (&Reconciler{}).installationChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != test.want {
				t.Errorf("a pass is woken: %v, want %v", got, test.want)
			}
		})
	}
}

// TestUsersInstallationThatComes fails when a user's installation starts a reconciliation that can't depend on it: a
// cluster may have thousands of them.
func TestUsersInstallationThatComes(t *testing.T) {
	r := &Reconciler{}
	r.recordList(nil, listState{Items: []item{{name: "our-ingress", spec: v1.AddonInstallationSpec{AddonRef: v1.AddonReference{Name: "ingress"}}}}})
	for _, test := range []struct {
		name string
		core bool
		want bool
	}{
		{"web", false, false}, {"web", true, true},
		{"our-ingress", false, true}, // of the list
		{"kube-proxy", false, true},  // of a rule
	} {
		one := &v1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Name: test.name}, Spec: v1.AddonInstallationSpec{CoreAddon: test.core}}
		changed := r.installationChanged()
		comes, goes := changed.Create(event.CreateEvent{Object: one}), changed.Delete(event.DeleteEvent{Object: one})
		if comes != test.want || goes != test.want {
			t.Errorf("%q, core %v: a pass is woken when it comes %v, when it goes %v; want %v", test.name, test.core, comes, goes, test.want)
		}
	}
}
