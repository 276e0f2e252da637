package conditions_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/conditions"
)

func ready(state metav1.ConditionStatus, reason string, generation int64) []metav1.Condition {
	return []metav1.Condition{{Type: v1.ConditionReady, Status: state, Reason: reason, ObservedGeneration: generation}}
}

// Red when tries between are told, when work under way counts as trouble or as its end, or when a
// restart repeats what a status says.
func TestTroubleIsReportedOnce(t *testing.T) {
	var reported conditions.Reported
	for _, test := range []struct {
		why        string
		conditions []metav1.Condition
		news       bool
	}{
		{"nothing is known yet", nil, false},
		{"work under way is no trouble", ready("False", v1.ReasonFetching, 1), false},
		{"trouble comes", ready("False", v1.ReasonHookFailed, 1), true},
		{"the same again", ready("False", v1.ReasonHookFailed, 1), false},
		{"a further try", ready("False", v1.ReasonHookRunning, 1), false},
		{"fails like the one before", ready("False", v1.ReasonHookFailed, 1), false},
		{"trouble becomes another", ready("Unknown", v1.ReasonClusterUnreachable, 1), true},
		{"an edit makes it new", ready("Unknown", v1.ReasonClusterUnreachable, 2), true},
		{"trouble is over", ready("True", v1.ReasonReady, 2), true},
		{"and stays so", ready("True", v1.ReasonReady, 2), false},
		{"what was told before comes back", ready("Unknown", v1.ReasonClusterUnreachable, 2), true},
	} {
		if _, news := reported.Update(test.conditions); news != test.news {
			t.Errorf("%s: news %t", test.why, news)
		}
	}
	restarted := conditions.ReportedIn(ready("False", v1.ReasonConflict, 3))
	if _, news := restarted.Update(ready("False", v1.ReasonClusterNotReady, 3)); news {
		t.Error("connecting after a restart is told")
	}
	if _, news := restarted.Update(ready("False", v1.ReasonConflict, 3)); news {
		t.Error("what the status told before a restart is repeated")
	}
}
