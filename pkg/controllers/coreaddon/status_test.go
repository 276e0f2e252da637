package coreaddon

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// TestCoreAddonsAreListedWithinLimits fails if status.core has more add-ons than its schema allows, or a longer reason: users may write
// the status of installations, and the API server would then refuse the whole status of the cluster.
func TestCoreAddonsAreListedWithinLimits(t *testing.T) {
	f := &facts{}
	for i := range listedAtMost + 1 {
		member := &v1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("addon-%03d", listedAtMost-i)}}
		member.Status.Conditions = []metav1.Condition{{
			Type: v1.ConditionReady, Status: metav1.ConditionFalse, Reason: strings.Repeat("R", 1024),
		}}
		f.plan.keep(member)
	}
	core := coreOf(f)
	if int(core.Total) != listedAtMost+1 || len(core.Addons) != listedAtMost || core.Addons[0].Name != "addon-000" {
		t.Errorf("%d of %d are listed, from %q", len(core.Addons), core.Total, core.Addons[0].Name)
	}
	if first := core.Addons[0]; len(first.Reason) != reasonLength || first.State != v1.CoreAddonFailing {
		t.Errorf("the first is %s with a reason of %d bytes", first.State, len(first.Reason))
	}
	f.set.frozen = "the list can't be read"
	f.set.wanted = []wanted{{name: "unknown"}}
	if len(coreOf(f).Addons) != listedAtMost || strings.Contains(fmt.Sprint(coreOf(f).Addons), "unknown") {
		t.Error("an unknown set lists add-ons that are not installed")
	}
}
