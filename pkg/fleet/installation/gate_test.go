package installation_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
)

func TestLacks(t *testing.T) {
	const pinned = "sha256:1"
	for name, of := range map[string]struct {
		status  metav1.ConditionStatus
		madeFor string
		digest  string
		fits    bool
		want    string
	}{
		"made for it":                 {metav1.ConditionTrue, "1.37.1", "", false, ""},
		"made for another":            {metav1.ConditionTrue, "1.36.3", "", true, "rendered for Kubernetes 1.36.3"},
		"not said, and fits":          {metav1.ConditionTrue, "", "", true, ""},
		"not said, and does not fit":  {metav1.ConditionTrue, "", "", false, "version 1.0.0 does not fit"},
		"pinned, and fits":            {metav1.ConditionTrue, "1.36.3", pinned, true, ""},
		"pinned, and does not fit":    {metav1.ConditionTrue, "1.36.3", pinned, false, "version 1.0.0 does not fit"},
		"not Ready, with its reason":  {metav1.ConditionFalse, "1.37.1", "", true, "Unhealthy"},
		"Ready for an earlier intent": {"old", "1.37.1", "", true, "not Ready"},
		"nothing was applied":         {metav1.ConditionTrue, "none", "", true, "nothing was applied"},
	} {
		t.Run(name, func(t *testing.T) {
			one := &v1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
			one.Spec.AddonRef.Digest = of.digest
			one.Status.Version = "1.0.0"
			if of.madeFor != "none" {
				one.Status.LastApplied = &v1.AppliedState{K8sVersion: of.madeFor}
			}
			ready := metav1.Condition{Type: v1.ConditionReady, Status: of.status, Reason: "Unhealthy", ObservedGeneration: 2}
			if of.status == "old" {
				ready.Status, ready.ObservedGeneration = metav1.ConditionTrue, 1
			}
			one.Status.Conditions = []metav1.Condition{ready}
			if got := installation.Lacks(one, "1.37.1", func(string) bool { return of.fits }); got != of.want {
				t.Errorf("got %q, want %q", got, of.want)
			}
		})
	}
}

func TestMayGate(t *testing.T) {
	for name, change := range map[string]func(*v1.AddonInstallation){
		"made by people": func(one *v1.AddonInstallation) { one.Spec.CoreAddon = false },
		"paused":         func(one *v1.AddonInstallation) { one.Spec.Paused = true },
		"once":           func(one *v1.AddonInstallation) { one.Spec.ReconcileStrategy = v1.ReconcileOnce },
		"being deleted":  func(one *v1.AddonInstallation) { one.DeletionTimestamp = new(metav1.Now()) },
	} {
		one := &v1.AddonInstallation{}
		one.Spec.CoreAddon = true
		if !installation.MayGate(one) {
			t.Error("a core add-on is waited for")
		}
		if change(one); installation.MayGate(one) {
			t.Errorf("%s: it is waited for", name)
		}
	}
	made := &v1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1.LabelSet: "tools"}}}
	if !installation.MayGate(made) {
		t.Error("what a set made is waited for")
	}
}
