package conditions_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-addons/trellis/pkg/conditions"
)

func TestSetKeepsTheTransitionTimeOfAnEqualStatus(t *testing.T) {
	var list []metav1.Condition
	conditions.False(&list, 1, "Ready", "Progressing", "first")
	before := list[0].LastTransitionTime
	conditions.False(&list, 2, "Ready", "Unhealthy", "second")
	got := list[0]
	if got.LastTransitionTime != before {
		t.Error("the transition time changed although the status did not")
	}
	if got.Reason != "Unhealthy" || got.Message != "second" || got.ObservedGeneration != 2 {
		t.Errorf("condition is %+v", got)
	}
}
