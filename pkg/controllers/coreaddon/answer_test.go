package coreaddon

import (
	"testing"
	"time"

	"k8s.io/utils/clock"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// TestAnErrorOfOurOwnIsNoLostAnswer fails when a write that was never sent counts as one that may have arrived: the
// cluster would keep its place for it.
func TestAnErrorOfOurOwnIsNoLostAnswer(t *testing.T) {
	r := New(Dependencies{Clock: clock.RealClock{}})
	f := &facts{asked: target.Ref{Namespace: "cluster-birch"}, inForce: &inForce{at: time.Now()}}
	live := &v1.AddonInstallation{Spec: v1.AddonInstallationSpec{AddonRef: v1.AddonReference{Name: "rbac"}, TargetNamespace: "other"}}
	f.plan.apply = []change{{wanted: wanted{name: "rbac", spec: specOf("rbac")}, live: live}}
	if outcome := r.apply(t.Context(), f); outcome != nil || f.refused == nil || f.failures["rbac"] == nil {
		t.Fatalf("the outcome is %v, refused %+v", outcome, f.refused)
	}
	if at := r.staging.written.UnknownSince(cluster.KeyOf(f.asked)); !at.IsZero() {
		t.Errorf("it is in doubt since %s", at)
	}
}
