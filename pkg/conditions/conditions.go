// Package conditions is the grammar of conditions: how one is set, which trouble Ready names, and
// which of it was reported already. Every controller writes conditions through it.
package conditions

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-addons/trellis/pkg/text"
)

// Set writes a condition. The transition time changes only with the status, and a condition that says
// the same again leaves everything as it was.
func Set(conditions *[]metav1.Condition, condition metav1.Condition) {
	condition.Message = text.Message(condition.Message)
	meta.SetStatusCondition(conditions, condition)
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

// Remove takes a condition off that does not apply.
func Remove(conditions *[]metav1.Condition, kind string) {
	meta.RemoveStatusCondition(conditions, kind)
}
