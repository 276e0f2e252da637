package installation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// TestWhoseFinalizersAreForeign turns red when one of ours or of Kubernetes is taken for a user's, or one of a user's for ours.
func TestWhoseFinalizersAreForeign(t *testing.T) {
	const users = "tenant.example/never"
	all := []string{
		v1.FinalizerCleanupInstallation, v1.FinalizerCoreProtection, users, metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents,
	}
	for _, isCore := range []bool{true, false} {
		live := &v1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Finalizers: all}, Spec: v1.AddonInstallationSpec{CoreAddon: isCore}}
		want := []string{users}
		if !isCore { // nobody would take it off
			want = []string{v1.FinalizerCoreProtection, users}
		}
		if diff := cmp.Diff(want, Foreign(live)); diff != "" {
			t.Errorf("core %t (-want +got):\n%s", isCore, diff)
		}
	}
}
