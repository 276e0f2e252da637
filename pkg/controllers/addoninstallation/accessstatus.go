package addoninstallation

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/conditions"
)

// projectAccess says how the credentials stand that the pass looked after. A pass that ended before leaves what was said.
func projectAccess(f *facts, result verdict) {
	state := &f.installation.Status
	if len(f.standings) == 0 {
		record := f.pass.Record()
		hasNone := f.pass.State.Loaded && (record == nil || len(record.Access) == 0)
		if hasNone && result.condition != kubermaticv1.ConditionAccessReady {
			state.Access = nil
			meta.RemoveStatusCondition(&state.Conditions, kubermaticv1.ConditionAccessReady)
		}
		return
	}
	state.Access = nil
	for _, one := range f.standings {
		shown := kubermaticv1.AccessState{Name: one.Name, Secret: one.Secret, Subject: one.Subject, Request: one.Request}
		if !one.Expires.IsZero() {
			expires := metav1.NewTime(one.Expires).Rfc3339Copy()
			shown.Expires = &expires
		}
		state.Access = append(state.Access, shown)
	}
	if result.condition == kubermaticv1.ConditionAccessReady {
		return // it is said
	}
	condition := metav1.Condition{
		Type: kubermaticv1.ConditionAccessReady, Status: metav1.ConditionTrue, Reason: kubermaticv1.ReasonAccessGranted,
		ObservedGeneration: f.installation.Generation,
	}
	if worst := f.worstAccess(); worst != nil {
		condition.Reason, condition.Message = worst.Problem.Reason, worst.Problem.Message
		if !worst.Usable {
			condition.Status = metav1.ConditionFalse
		}
	}
	conditions.Set(&state.Conditions, condition)
}
