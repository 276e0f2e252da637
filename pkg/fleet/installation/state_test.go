package installation

import (
	"math/rand/v2"
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
		{"it waits for others", says(metav1.ConditionFalse, v1.ReasonWaitingForOrder, 0), time.Hour, Underway, 65 * time.Minute},
		{"it waits for others without end", says(metav1.ConditionFalse, v1.ReasonWaitingForOrder, 0), 65 * time.Minute, Overdue, 0},
		{"it waits for people", says(metav1.ConditionFalse, v1.ReasonPruneNeedsApproval, 0), time.Hour, Underway, 65 * time.Minute},
		{"people don't come", says(metav1.ConditionFalse, v1.ReasonPruneNeedsApproval, 0), 65 * time.Minute, Overdue, 0},
		{"a Ready that comes and goes", both(says(metav1.ConditionTrue, v1.ReasonReady, 33*time.Minute), applied(time.Minute)), 35 * time.Minute,
			Underway, 36 * time.Minute},
		{"a Ready that comes and goes without end", both(says(metav1.ConditionTrue, v1.ReasonReady, 33*time.Minute), applied(time.Minute)),
			36 * time.Minute, Overdue, 38 * time.Minute},
		{"it settles late", both(says(metav1.ConditionTrue, v1.ReasonReady, 33*time.Minute), applied(time.Minute)), 38 * time.Minute, Settled, 0},
		{"changed again and again", both(ready, applied(62*time.Minute)), 64 * time.Minute, Underway, 65 * time.Minute},
		{"changed again and again without end", both(ready, applied(62*time.Minute)), 65 * time.Minute, Overdue, 67 * time.Minute},
		{"changed again, and not Ready", both(says(metav1.ConditionFalse, v1.ReasonUnhealthy, 0), applied(62*time.Minute)), 70 * time.Minute,
			Overdue, 92 * time.Minute},
		{"its removal waits without end", both(says(metav1.ConditionFalse, v1.ReasonWaitingForOrder, 0), deleted), 85 * time.Minute, Overdue, 0},
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

// TestNoMoveIsUnderWayWithoutEnd plays what a cluster's users can do to an installation, at any time and in any order: pause it, have it
// changed by values of theirs, break it and mend it, make it wait for others or for an approval. Red when it is under way for more than
// soak and two deadlines, or when it is settled without having been Ready for the soak time.
func TestNoMoveIsUnderWayWithoutEnd(t *testing.T) {
	for seed := range uint64(5000) {
		chance := rand.New(rand.NewPCG(seed, 1))
		pace := Pace{Soak: time.Duration(1+chance.IntN(20)) * time.Minute, Deadline: time.Duration(1+chance.IntN(30)) * time.Minute}
		live := &v1.AddonInstallation{}
		live.Annotations = map[string]string{v1.AnnotationMoved: moved.Format(time.RFC3339Nano)}
		most := pace.Soak + 2*pace.Deadline
		var touched time.Duration
		for after := time.Duration(0); after < 2*most; after += time.Duration(1+chance.IntN(4)) * time.Minute {
			at := metav1.NewTime(moved.Add(after))
			state := StateOf(live, pace, at.Time)
			if state.Phase == Underway && after >= most || state.Phase == Settled && after-touched < pace.Soak {
				t.Fatalf("life %d: after %s of %+v it is %s, touched after %s", seed, after, pace, state.Phase, touched)
			}
			if state.Phase == Underway && !state.Next.After(at.Time) {
				t.Fatalf("life %d: after %s it is to be looked at again at %s", seed, after, state.Next)
			}
			if chance.IntN(3) == 0 { // nobody does anything
				continue
			}
			touched = after
			switch chance.IntN(5) {
			case 0:
				live.Spec.Paused = !live.Spec.Paused
				says(metav1.ConditionFalse, v1.ReasonPaused, after)(live)
			case 1:
				live.Generation++
				live.Status.LastApplied = &v1.AppliedState{Time: &at}
			case 2:
				says(metav1.ConditionFalse, v1.ReasonUnhealthy, after)(live)
			case 3:
				says(metav1.ConditionFalse, []string{v1.ReasonWaitingForOrder, v1.ReasonPruneNeedsApproval}[chance.IntN(2)], after)(live)
			default:
				says(metav1.ConditionTrue, v1.ReasonReady, after)(live)
			}
		}
	}
}
