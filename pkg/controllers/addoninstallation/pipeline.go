package addoninstallation

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/conditions"
	order "github.com/trellis-addons/trellis/pkg/installation"
)

// projectPipeline: the steps before the failing one have passed; what passed after it stays as it was.
func projectPipeline(f *facts, result verdict) {
	if !result.done && result.condition == kubermaticv1.ConditionReady {
		return
	}
	list, generation := &f.installation.Status.Conditions, f.installation.Generation
	isHeld := order.IsHeld(result.reason) // before anything was rendered
	if isHeld {
		beginWait(list)
	}
	for at, step := range pipeline {
		if isHeld && step.condition == kubermaticv1.ConditionRendered {
			continue
		}
		if !result.done && step.condition == result.condition {
			conditions.Set(list, result.as(step.condition, generation))
			for _, later := range pipeline[at+1:] {
				forgetFailure(list, generation, later.condition, step.condition)
			}
			return
		}
		if f.stays(step.condition) || step.condition == kubermaticv1.ConditionAccessReady { // few versions have access
			continue
		}
		reason, message := f.success(step.condition, step.reason)
		conditions.True(list, generation, step.condition, reason, message)
	}
}

// forgetFailure has a condition that was False become Unknown while an earlier one fails: the failure was found with other inputs.
// Healthy and AccessReady are about what is in the clusters, and a wait for others has its clock in condition Applied.
func forgetFailure(list *[]metav1.Condition, generation int64, condition, earlier string) {
	former := meta.FindStatusCondition(*list, condition)
	isLive := condition == kubermaticv1.ConditionHealthy || condition == kubermaticv1.ConditionAccessReady
	if former == nil || former.Status != metav1.ConditionFalse || isLive || order.IsHeld(former.Reason) {
		return
	}
	conditions.Unknown(list, generation, condition, kubermaticv1.ReasonProgressing, "is tried again once "+earlier+" is True")
}

// success is what a condition says that was earned, where it has more to say than its word.
func (f *facts) success(condition, word string) (reason, message string) {
	switch condition {
	case kubermaticv1.ConditionApplied:
		return word, sharedText(f.pass.Record())
	case kubermaticv1.ConditionCompatible:
		if f.pinned != "" {
			return kubermaticv1.ReasonPinned, f.pinned
		}
		if version := f.choice.Version; version != nil && version.Deprecated != "" {
			return kubermaticv1.ReasonDeprecated, deprecation(version, f.installation.Status.AvailableUpdate)
		}
	case kubermaticv1.ConditionRendered:
		if hasNothing(&f.pass) {
			return kubermaticv1.ReasonNothingToApply, "every template of the add-on renders to nothing for this cluster"
		}
		return word, f.leftOut()
	case kubermaticv1.ConditionHealthy:
		return wellBy(&f.pass)
	case kubermaticv1.ConditionFetched:
		if f.moved != "" {
			return kubermaticv1.ReasonArtifactMoved, f.moved
		}
	case kubermaticv1.ConditionValuesResolved:
		return word, unknownKeys(f.installation, f.values)
	}
	return word, ""
}

// beginWait has a wait for others begin with a transition of its own, which is its clock, also where
// condition Applied was False for something else.
func beginWait(list *[]metav1.Condition) {
	applied := meta.FindStatusCondition(*list, kubermaticv1.ConditionApplied)
	if applied != nil && applied.Status == metav1.ConditionFalse && !order.IsHeld(applied.Reason) {
		meta.RemoveStatusCondition(list, kubermaticv1.ConditionApplied)
	}
}
