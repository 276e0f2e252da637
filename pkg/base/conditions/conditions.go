// Package conditions sets conditions. It decides which problem Ready names, and which problem was already reported.
// Every controller writes conditions through it.
package conditions

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
)

// Set writes a condition. The transition time changes only with the status.
func Set(conditions *[]metav1.Condition, condition metav1.Condition) {
	condition.Message = text.Message(condition.Message)
	meta.SetStatusCondition(conditions, condition)
}

// Date sets the transition time of each condition whose status differs from before. Set uses the real clock: callers
// with a clock of their own call Date afterwards.
func Date(conditions *[]metav1.Condition, before []metav1.Condition, at time.Time) {
	for i := range *conditions {
		condition := &(*conditions)[i]
		if previous := meta.FindStatusCondition(before, condition.Type); previous == nil || previous.Status != condition.Status {
			condition.LastTransitionTime = metav1.NewTime(at)
		}
	}
}

// True sets a condition to True.
func True(conditions *[]metav1.Condition, generation int64, kind, reason, message string) {
	Set(conditions, metav1.Condition{
		Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message, ObservedGeneration: generation,
	})
}

// False sets a condition to False.
func False(conditions *[]metav1.Condition, generation int64, kind, reason, message string) {
	Set(conditions, metav1.Condition{
		Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message, ObservedGeneration: generation,
	})
}

// Unknown sets a condition to Unknown.
func Unknown(conditions *[]metav1.Condition, generation int64, kind, reason, message string) {
	Set(conditions, metav1.Condition{
		Type: kind, Status: metav1.ConditionUnknown, Reason: reason, Message: message, ObservedGeneration: generation,
	})
}

// State summarizes an object's condition Ready.
type State string

// States, as metrics name them.
const (
	// StateReady: Ready is True.
	StateReady State = "ready"
	// StateUnderWay: Ready is not True, and users need not act.
	StateUnderWay State = "underWay"
	// StateFailing: Ready is False, and a user must act.
	StateFailing State = "failing"
	// StateUnknown: Ready is Unknown.
	StateUnknown State = "unknown"
)

// underWay are reasons of Ready for work in progress, or for a requested state.
var underWay = map[string]bool{
	kubermaticv1.ReasonProgressing: true, kubermaticv1.ReasonPaused: true, kubermaticv1.ReasonClusterNotReady: true,
	kubermaticv1.ReasonRemoving: true, kubermaticv1.ReasonFetching: true, kubermaticv1.ReasonRendering: true,
	kubermaticv1.ReasonWaitingForStage: true, kubermaticv1.ReasonNamespaceTerminating: true,
	kubermaticv1.ReasonHookRunning: true, kubermaticv1.ReasonDistributing: true, kubermaticv1.ReasonWaitingForOrder: true,
	kubermaticv1.ReasonRollingOut: true,
}

// StateOf is an object's state, with its condition Ready; nil before it has one.
func StateOf(conditions []metav1.Condition) (State, *metav1.Condition) {
	ready := meta.FindStatusCondition(conditions, kubermaticv1.ConditionReady)
	switch {
	case ready == nil:
		return StateUnderWay, nil
	case ready.Status == metav1.ConditionTrue:
		return StateReady, ready
	case underWay[ready.Reason]:
		return StateUnderWay, ready
	case ready.Status == metav1.ConditionFalse:
		return StateFailing, ready
	}
	return StateUnknown, ready
}

// Reported remembers the last reported problem of an object: each problem is reported when it begins or changes, not
// at every try. The zero value remembers none.
type Reported struct {
	reason     string
	generation int64
}

// ReportedIn remembers the problem in a status, so that a new process does not repeat it.
func ReportedIn(conditions []metav1.Condition) Reported {
	var reported Reported
	reported.Update(conditions)
	return reported
}

// Update says whether there is something to report, with condition Ready: a new problem, or the end of the last
// reported problem, when Ready becomes True. An edit makes an old problem new. Work in progress does not end a
// problem.
func (r *Reported) Update(conditions []metav1.Condition) (ready *metav1.Condition, isNew bool) {
	state, ready := StateOf(conditions)
	before := *r
	switch state {
	case StateUnderWay:
		return ready, false
	case StateReady:
		*r = Reported{}
		return ready, before.reason != ""
	}
	*r = Reported{reason: ready.Reason, generation: ready.ObservedGeneration}
	return ready, *r != before
}
