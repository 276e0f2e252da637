package installation

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

var moved = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func says(status metav1.ConditionStatus, reason string, after time.Duration) func(*v1.AddonInstallation) {
	return func(live *v1.AddonInstallation) {
		live.Status.Conditions = []metav1.Condition{{
			Type: v1.ConditionReady, Status: status, Reason: reason, ObservedGeneration: live.Generation,
			LastTransitionTime: metav1.NewTime(moved.Add(after)),
		}}
	}
}

func both(changes ...func(*v1.AddonInstallation)) func(*v1.AddonInstallation) {
	return func(live *v1.AddonInstallation) {
		for _, change := range changes {
			change(live)
		}
	}
}

// TestSoakAndDeadlineCountFromTheLastMove turns red when an old Ready counts, when time in which an
// installation waits for others counts, or when a deadline passes while it soaks.
func TestSoakAndDeadlineCountFromTheLastMove(t *testing.T) {
	pace := Pace{Soak: 5 * time.Minute, Deadline: 30 * time.Minute}
	ready := says(metav1.ConditionTrue, v1.ReasonReady, time.Minute)
	once := func(live *v1.AddonInstallation) { live.Spec.ReconcileStrategy = v1.ReconcileOnce }
	older := func(live *v1.AddonInstallation) { live.Generation++ }
	applied := func(after time.Duration) func(*v1.AddonInstallation) {
		return func(live *v1.AddonInstallation) {
			at := metav1.NewTime(moved.Add(after))
			live.Status.LastApplied = &v1.AppliedState{Time: &at}
		}
	}
	deleted := func(live *v1.AddonInstallation) {
		at := metav1.NewTime(moved.Add(20 * time.Minute))
		live.DeletionTimestamp = &at
	}
	for _, test := range []struct {
		why    string
		change func(*v1.AddonInstallation)
		after  time.Duration
		want   Phase
		next   time.Duration
	}{
		{"nothing is said yet", both(), time.Minute, Underway, 30 * time.Minute},
		{"nothing is said in time", both(), 30 * time.Minute, Failed, 0},
		{"Ready and not soaked", ready, 5 * time.Minute, Underway, 6 * time.Minute},
		{"Ready for the soak time", ready, 6 * time.Minute, Settled, 0},
		{"an old Ready proves nothing", says(metav1.ConditionTrue, v1.ReasonReady, -time.Hour), 4 * time.Minute, Underway, 5 * time.Minute},
		{"Ready of an older generation is none", both(ready, older), 7 * time.Minute, Underway, 30 * time.Minute},
		{"soak counts from a later change of the cluster", both(ready, applied(3*time.Minute)), 7 * time.Minute, Underway, 8 * time.Minute},
		{"Once needs no soak", both(ready, once), 2 * time.Minute, Settled, 0},
		{"it soaks past the deadline", says(metav1.ConditionTrue, v1.ReasonReady, 29*time.Minute), 31 * time.Minute, Underway, 34 * time.Minute},
		{"not Ready in time", says(metav1.ConditionFalse, v1.ReasonUnhealthy, time.Minute), 29 * time.Minute, Underway, 30 * time.Minute},
		{"not Ready past the deadline", says(metav1.ConditionFalse, v1.ReasonUnhealthy, time.Minute), 30 * time.Minute, Failed, 0},
		{"out of reach past the deadline", says(metav1.ConditionUnknown, v1.ReasonClusterUnreachable, 0), 30 * time.Minute, Failed, 0},
		{"rolled back", says(metav1.ConditionFalse, v1.ReasonRolledBack, time.Minute), 2 * time.Minute, Failed, 0},
		{"rolled back before the last move", both(says(metav1.ConditionFalse, v1.ReasonRolledBack, -time.Minute), older), time.Minute,
			Underway, 30 * time.Minute},
		{"it waits for others", says(metav1.ConditionFalse, v1.ReasonWaitingForOrder, 0), time.Hour, Underway, 0},
		{"it waits for people", says(metav1.ConditionFalse, v1.ReasonPruneNeedsApproval, 0), time.Hour, Underway, 0},
		{"applied late, after it waited", both(says(metav1.ConditionFalse, v1.ReasonProgressing, 0), applied(20*time.Minute)), 40 * time.Minute,
			Underway, 50 * time.Minute},
		{"its removal is in time", both(ready, deleted), 40 * time.Minute, Underway, 50 * time.Minute},
		{"its removal is not", both(ready, deleted), 50 * time.Minute, Failed, 0},
	} {
		t.Run(test.why, func(t *testing.T) {
			live := &v1.AddonInstallation{}
			live.Generation = 2
			live.Annotations = map[string]string{v1.AnnotationMoved: moved.Format(time.RFC3339Nano)}
			test.change(live)
			got := StateOf(live, pace, moved.Add(test.after))
			if got.Phase != test.want {
				t.Errorf("it is %s, want %s", got.Phase, test.want)
			}
			if next := got.Next; test.next == 0 != next.IsZero() || test.next != 0 && !next.Equal(moved.Add(test.next)) {
				t.Errorf("time changes it at %s, want %s", next, test.next)
			}
		})
	}
}
