package world

import (
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// TestChangesBesideTheStatusAreFound fails when a change outside of the status is not found, or when one of the
// status, or a condition on the version, counts as one.
func TestChangesBesideTheStatusAreFound(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		why    string
		change func(*v1.AddonInstallation)
		want   []string
	}{
		{"the status alone", func(*v1.AddonInstallation) {}, nil},
		{"an annotation", func(one *v1.AddonInstallation) { one.Annotations = map[string]string{"a": "b"} }, []string{"metadata.annotations"}},
		{"a field", func(one *v1.AddonInstallation) { one.Spec.Paused = true }, []string{"spec.paused"}},
		{"both", func(one *v1.AddonInstallation) {
			one.Spec.Paused, one.Finalizers = true, []string{"a"}
		}, []string{"metadata.finalizers", "spec.paused"}},
	} {
		before := &v1.AddonInstallation{}
		before.Name, before.ResourceVersion, before.Spec.TargetNamespace = "a", "1", "a"
		after := before.DeepCopy()
		after.Status.Version = "1.0.0"
		test.change(after)
		patch, err := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}).Data(after)
		if err != nil {
			t.Fatal(err)
		}
		if lost := lostChanges(patch); !slices.Equal(lost, test.want) {
			t.Errorf("%s: %q are lost, want %q, of %s", test.why, lost, test.want, patch)
		}
	}
}
