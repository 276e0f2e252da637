package conditions_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-addons/trellis/pkg/base/conditions"
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

func TestDateGivesTransitionsTheirTime(t *testing.T) {
	var list []metav1.Condition
	conditions.False(&list, 1, "Ready", "Progressing", "")
	conditions.True(&list, 1, "Applied", "Applied", "")
	conditions.Date(&list, nil, time.Unix(1, 0))
	before := slices.Clone(list)
	conditions.True(&list, 1, "Ready", "Ready", "")
	conditions.True(&list, 1, "Healthy", "Healthy", "")
	conditions.Date(&list, before, time.Unix(2, 0))
	for i, want := range []int64{2, 1, 2} {
		if got := list[i].LastTransitionTime.Unix(); got != want {
			t.Errorf("%s changed at %d, want %d", list[i].Type, got, want)
		}
	}
}
