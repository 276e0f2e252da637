package waves

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// movedAt is an installation that was moved then, with this condition since then.
func movedAt(moved time.Duration, status metav1.ConditionStatus, reason string, since time.Duration) *v1.AddonInstallation {
	live := &v1.AddonInstallation{}
	live.Name, live.Generation = "web", 1
	live.Annotations = map[string]string{v1.AnnotationMoved: noon.Add(moved).Format(time.RFC3339Nano)}
	live.Status.Conditions = []metav1.Condition{{
		Type: v1.ConditionReady, Status: status, Reason: reason, ObservedGeneration: 1, LastTransitionTime: metav1.NewTime(noon.Add(since)),
	}}
	return live
}

func reportsOf(all ...*v1.AddonInstallation) []*installation.Report {
	var found []*installation.Report
	for _, live := range all {
		said := installation.ReportOf(live)
		found = append(found, &said)
	}
	return found
}

func deletedAt(after time.Duration, live *v1.AddonInstallation) *v1.AddonInstallation {
	at := metav1.NewTime(noon.Add(after))
	live.DeletionTimestamp = &at
	return live
}

// TestTheStatusOfAClusterByItsFacts fails where a rule breaks that both kinds of sets use. A revision began at noon; it
// is ten past. TestTheStatusOfACluster of controller addonset covers the results of a plan.
func TestTheStatusOfAClusterByItsFacts(t *testing.T) {
	strategy, err := rollout.NewStrategy(&v1.Rollout{Pace: v1.Pace{
		Soak: &metav1.Duration{Duration: time.Minute}, ProgressDeadline: &metav1.Duration{Duration: 4 * time.Minute},
	}})
	if err != nil {
		t.Fatal(err)
	}
	earlier := func() *v1.AddonInstallation { return movedAt(-time.Hour, "True", "Ready", -time.Hour) }
	settled := earlier()
	stalled := movedAt(30*time.Second, "False", v1.ReasonWaitingForOrder, time.Minute)
	fallen := movedAt(time.Minute, "False", v1.ReasonRolledBack, 2*time.Minute)
	underway := movedAt(9*time.Minute, "False", v1.ReasonProgressing, 9*time.Minute)
	paused := movedAt(30*time.Second, "False", v1.ReasonPaused, time.Minute)
	halted := map[string]string{"halted": "true"}
	cordoned := movedAt(time.Minute, "False", v1.ReasonRolledBack, 2*time.Minute)
	cordoned.Status.Cause = v1.ReasonUnschedulable
	before := movedAt(time.Minute, "False", v1.ReasonRolledBack, 2*time.Minute)
	before.Annotations[v1.AnnotationSick] = "true"
	before.Status.Cause = v1.ReasonUnschedulable
	cutOff := movedAt(30*time.Second, "Unknown", v1.ReasonClusterUnreachable, time.Minute)
	update, remove := []rollout.Change{{Item: "web", Kind: v1.ChangeUpdate}}, []rollout.Change{{Item: "web", Kind: v1.ChangeRemove}}
	one := []rollout.Removal{{ID: "one"}}
	taken := []rollout.Trouble{{Item: "web", Reason: v1.ReasonNameTaken}}
	young := noon.Add(time.Second)
	for _, test := range []struct {
		why   string
		facts Facts
		want  v1.ClusterState
		extra func(ClusterStatus) bool
	}{
		{"a removal is a move, also of what was moved long ago", Facts{Presence: Present, Mine: reportsOf(deletedAt(9*time.Minute, earlier()))}, v1.ClusterMoving, nil},
		{"a removal that began before the revision and is over",
			Facts{Presence: Present, Mine: reportsOf(deletedAt(-25*time.Minute, earlier()))}, v1.ClusterCurrent, nil},
		{"a removal that failed, from the second before the revision begins, which may be its own",
			Facts{Presence: Present, Mine: reportsOf(deletedAt(-time.Second, earlier()))}, v1.ClusterFailed, nil},
		{"nothing can be carried out in it", Facts{Presence: Present, Blocked: taken}, v1.ClusterBlocked, nil},
		{"nor in one that is paused, which is its owner's", Facts{Presence: Present, Blocked: taken, Away: v1.ReasonPaused}, v1.ClusterAway,
			func(s ClusterStatus) bool { return s.Trouble.Reason == v1.ReasonPaused }},
		{"nor in a new one, which is no evidence", Facts{Presence: Present, Blocked: taken, Created: young}, v1.ClusterBlocked,
			func(s ClusterStatus) bool { return s.Trouble.Reason == v1.ReasonNameTaken }},
		{"a new one that is done", Facts{Presence: Present, Mine: reportsOf(settled), Created: young}, v1.ClusterNew,
			func(s ClusterStatus) bool { return !s.AtOnce && s.Group != rollout.NoGroup }},
		{"one made in the second in which the revision begins", Facts{Presence: Present, Changes: update, Created: noon}, v1.ClusterNew,
			func(s ClusterStatus) bool { return s.AtOnce && s.Group == rollout.NoGroup }},
		{"one made before it waits for its turn", Facts{Presence: Present, Changes: update, Created: noon.Add(-time.Second)}, v1.ClusterBehind,
			func(s ClusterStatus) bool { return !s.AtOnce }},
		{"one that was moved before the revision is not new, whatever clocks say", Facts{Presence: Present, Mine: reportsOf(settled), Changes: update, Created: young},
			v1.ClusterBehind, func(s ClusterStatus) bool { return s.Group == 0 && !s.AtOnce }},
		{"a new one that can't be reached waits in its group", Facts{Presence: Present, Changes: update, Created: young, Away: v1.ReasonPaused}, v1.ClusterAway,
			func(s ClusterStatus) bool { return s.Group == 0 && !s.AtOnce }},
		{"what is applied no longer fits", Facts{Presence: Present, Mine: reportsOf(settled), Changes: update, AtOnce: true}, v1.ClusterBehind,
			func(s ClusterStatus) bool { return s.AtOnce && s.Group == rollout.NoGroup }},
		{"the same, where it failed with another version", Facts{Presence: Present, Mine: reportsOf(fallen), Changes: update, AtOnce: true}, v1.ClusterBehind,
			func(s ClusterStatus) bool { return s.AtOnce && s.Group == rollout.NoGroup }},
		{"the same, while it moves: it keeps its place", Facts{Presence: Present, Mine: reportsOf(underway), Changes: update, AtOnce: true}, v1.ClusterMoving,
			func(s ClusterStatus) bool { return s.AtOnce && s.Again && s.Group == 0 }},
		{"the same, out of reach", Facts{Presence: Present, Mine: reportsOf(settled), Changes: update, AtOnce: true, Away: v1.ReasonPaused}, v1.ClusterAway,
			func(s ClusterStatus) bool { return !s.AtOnce }},
		{"it is not known whether it is selected", Facts{Presence: Unknown, Mine: reportsOf(settled), Created: young}, v1.ClusterAway,
			func(s ClusterStatus) bool { return s.Trouble.Reason == v1.ReasonClusterNotReady }},
		{"one waits without end", Facts{Presence: Present, Mine: reportsOf(settled, stalled)}, v1.ClusterSick,
			func(s ClusterStatus) bool {
				return s.Trouble.Item == "web" && s.Trouble.Reason == v1.ReasonWaitingForOrder && s.Group == 0
			}},
		{"the same, and another is in time: that takes a place", Facts{Presence: Present, Mine: reportsOf(stalled, underway)}, v1.ClusterSick,
			func(s ClusterStatus) bool { return s.Holds && !s.Again }},
		{"the same, and another failed", Facts{Presence: Present, Mine: reportsOf(stalled, fallen)}, v1.ClusterFailed, nil},
		{"the same, and it lacks something, which it gets in its turn", Facts{Presence: Present, Mine: reportsOf(stalled), Changes: update}, v1.ClusterSick,
			func(s ClusterStatus) bool { return s.Again && !s.AtOnce && !s.Holds }},
		{"the same, out of reach", Facts{Presence: Present, Mine: reportsOf(stalled), Changes: update, Away: v1.ReasonPaused}, v1.ClusterSick,
			func(s ClusterStatus) bool { return !s.Again }},
		{"the same, where a removal alone waits for approval", Facts{Presence: Present, Mine: reportsOf(stalled), Changes: remove, Removals: one},
			v1.ClusterSick, func(s ClusterStatus) bool { return !s.Again }},
		{"the same, and what is applied no longer fits", Facts{Presence: Present, Mine: reportsOf(stalled), Changes: update, AtOnce: true}, v1.ClusterBehind,
			func(s ClusterStatus) bool { return s.AtOnce && s.Group == rollout.NoGroup }},
		{"a new one waits without end", Facts{Presence: Present, Mine: reportsOf(stalled), Created: young}, v1.ClusterNew, nil},
		{"it waits without end since an earlier revision",
			Facts{Presence: Present, Mine: reportsOf(movedAt(-2*time.Hour, "False", v1.ReasonWaitingForOrder, -2*time.Hour))},
			v1.ClusterCurrent, nil},
		{"its owner paused it in the middle of its move", Facts{Presence: Present, Mine: reportsOf(paused)}, v1.ClusterAway,
			func(s ClusterStatus) bool { return !s.Lost && s.Trouble.Reason == v1.ReasonPaused }},
		{"the same, once it had the revision", Facts{Presence: Present, Mine: reportsOf(settled, paused)}, v1.ClusterAway, nil},
		{"the same, and something else is in time", Facts{Presence: Present, Mine: reportsOf(paused, underway)}, v1.ClusterMoving, nil},
		{"the same, and something else failed", Facts{Presence: Present, Mine: reportsOf(paused, fallen)}, v1.ClusterFailed, nil},
		{"it fails for a reason that may be its own", Facts{Presence: Present, Mine: reportsOf(cordoned)}, v1.ClusterSick,
			func(s ClusterStatus) bool {
				return s.Cause == v1.ReasonUnschedulable && s.Trouble.Reason == s.Cause && !s.Again && !s.Holds
			}},
		{"the same, and it lacks something, which it gets after all others", Facts{Presence: Present, Mine: reportsOf(cordoned), Changes: update},
			v1.ClusterSick, func(s ClusterStatus) bool { return s.Again }},
		{"the same, and something else failed for none", Facts{Presence: Present, Mine: reportsOf(cordoned, fallen)}, v1.ClusterFailed,
			func(s ClusterStatus) bool { return s.Cause == "" }},
		{"in whatever order", Facts{Presence: Present, Mine: reportsOf(fallen, cordoned)}, v1.ClusterFailed, nil},
		{"it failed before: that says nothing of the revision", Facts{Presence: Present, Mine: reportsOf(before)}, v1.ClusterSick,
			func(s ClusterStatus) bool { return s.Cause == "" && s.Trouble.Reason == v1.ReasonRolledBack }},
		{"the same, and something else failed now", Facts{Presence: Present, Mine: reportsOf(before, cordoned)}, v1.ClusterSick,
			func(s ClusterStatus) bool { return s.Cause == v1.ReasonUnschedulable }},
		{"it is left out and failed", Facts{Presence: Present, Mine: reportsOf(fallen), LeftOut: true}, v1.ClusterSick,
			func(s ClusterStatus) bool { return s.Trouble.Reason == v1.ReasonLeftOut && s.Trouble.Item == "web" }},
		{"it is left out and has it: no evidence", Facts{Presence: Present, Mine: reportsOf(settled), LeftOut: true}, v1.ClusterSick,
			func(s ClusterStatus) bool { return s.Trouble.Reason == v1.ReasonLeftOut && !s.Again }},
		{"it is left out and new and has it: none", Facts{Presence: Present, Mine: reportsOf(settled), Created: young, LeftOut: true}, v1.ClusterSick, nil},
		{"it is left out and lacks something, which it gets after all others", Facts{Presence: Present, Mine: reportsOf(settled), Changes: update, LeftOut: true},
			v1.ClusterSick, func(s ClusterStatus) bool { return s.Again && !s.Holds }},
		{"it is left out and moves: nobody waits, and it takes a place", Facts{Presence: Present, Mine: reportsOf(underway), LeftOut: true},
			v1.ClusterSick, func(s ClusterStatus) bool { return s.Holds }},
		{"it is left out with the reason of others", Facts{Presence: Present, Mine: reportsOf(cordoned), LeftOut: true}, v1.ClusterSick,
			func(s ClusterStatus) bool {
				return s.Cause == "" && strings.Contains(s.Trouble.Message, v1.ReasonUnschedulable)
			}},
		{"it is left out and waits for approval of a removal", Facts{Presence: Present, Mine: reportsOf(settled), Changes: remove, Removals: one, LeftOut: true},
			v1.ClusterSick, func(s ClusterStatus) bool { return !s.Again && !s.Held }},
		{"it is left out and cut off: that takes no place", Facts{Presence: Present, Mine: reportsOf(cutOff), LeftOut: true}, v1.ClusterAway,
			func(s ClusterStatus) bool { return !s.Lost }},
		{"it is left out and no longer fits", Facts{Presence: Present, Mine: reportsOf(settled), Changes: update, AtOnce: true, LeftOut: true}, v1.ClusterBehind,
			func(s ClusterStatus) bool { return s.AtOnce && s.Group == rollout.NoGroup }},
		{"it was cut off in the middle of its move", Facts{Presence: Present, Mine: reportsOf(cutOff)}, v1.ClusterAway,
			func(s ClusterStatus) bool { return s.Lost && s.Trouble.Reason == v1.ReasonClusterUnreachable }},
		{"the same, and it is new", Facts{Presence: Present, Mine: reportsOf(cutOff), Created: young}, v1.ClusterAway, nil},
		{"the same, and it lacks something", Facts{Presence: Present, Mine: reportsOf(cutOff), Changes: update}, v1.ClusterAway,
			func(s ClusterStatus) bool { return !s.Again }},
		{"the same, while the set is halted: it may have failed before", Facts{Presence: Present, Mine: reportsOf(cutOff), Labels: halted}, v1.ClusterFailed, nil},
		{"it was cut off before its deadline", Facts{Presence: Present, Mine: reportsOf(movedAt(8*time.Minute, "Unknown", v1.ReasonClusterUnreachable, 0))},
			v1.ClusterMoving, nil},
		{"it was moved in an hour, by a clock that was ahead: it takes no place", Facts{Presence: Present, Mine: reportsOf(movedAt(time.Hour, "True", "Ready", 0))},
			v1.ClusterSick, func(s ClusterStatus) bool {
				return !s.Holds && !s.Next.IsZero() && strings.Contains(s.Trouble.Message, "clock")
			}},
		{"the same, and it lacks something, which it gets after all others", Facts{
			Presence: Present, Mine: reportsOf(movedAt(time.Hour, "True", "Ready", 0)), Changes: update}, v1.ClusterSick,
			func(s ClusterStatus) bool { return s.Again && !s.Holds }},
		{"it is on its way out, kept by its users, who say that it was moved far ahead", Facts{
			Presence: Absent, Mine: reportsOf(deletedAt(9*time.Minute, movedAt(90000*time.Hour, "True", "Ready", 0)))}, v1.ClusterSick,
			func(s ClusterStatus) bool { return !s.Holds }},
		{"it was moved by a clock that is a little ahead", Facts{Presence: Present, Mine: reportsOf(movedAt(10*time.Minute+30*time.Second, "True", "Ready", 0))},
			v1.ClusterMoving, nil},
		{"and is unselected", Facts{Presence: Absent, Mine: reportsOf(stalled), Changes: remove}, v1.ClusterBehind, nil},
		{"what failed and is unselected is behind", Facts{Presence: Absent, Mine: reportsOf(fallen), Changes: remove, Removals: one},
			v1.ClusterBehind, func(s ClusterStatus) bool { return s.Held }},
		{"a removal that nobody approved and something else", Facts{Presence: Present, Mine: reportsOf(settled), Changes: append(remove, update...), Removals: one},
			v1.ClusterBehind, func(s ClusterStatus) bool { return !s.Held }},
		{"a removal that needs no approval", Facts{Presence: Present, Mine: reportsOf(settled), Changes: remove}, v1.ClusterBehind,
			func(s ClusterStatus) bool { return !s.Held }},
		{"a new one that waits for approval alone", Facts{Presence: Present, Mine: reportsOf(movedAt(time.Minute, "True", "Ready", time.Minute)),
			Changes: remove, Removals: one, Created: young}, v1.ClusterNew, func(s ClusterStatus) bool { return !s.AtOnce }},
	} {
		t.Run(test.why, func(t *testing.T) {
			got := ClusterStatusOf(test.facts, Course{
				Strategy: strategy, StartedAt: noon, Now: noon.Add(10 * time.Minute), Waiting: map[string]bool{"one": true},
				Halted: test.facts.Labels["halted"] != "",
			})
			if got.State != test.want || test.extra != nil && !test.extra(got) {
				t.Errorf("it is %s, want %s: %+v", got.State, test.want, got)
			}
		})
	}
}

// TestALongerSoakIsForWhatMovesFromThenOn fails where an edit of soak makes installations that were Ready in an
// earlier revision take places again.
func TestALongerSoakIsForWhatMovesFromThenOn(t *testing.T) {
	strategy, err := rollout.NewStrategy(&v1.Rollout{Pace: v1.Pace{
		Soak: &metav1.Duration{Duration: 24 * time.Hour}, ProgressDeadline: &metav1.Duration{Duration: time.Hour},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		why     string
		live    *v1.AddonInstallation
		changes []rollout.Change
		want    v1.ClusterState
	}{
		{"it has what it is to have", movedAt(-2*time.Hour, "True", "Ready", -2*time.Hour), nil, v1.ClusterCurrent},
		{"it lacks something", movedAt(-2*time.Hour, "True", "Ready", -2*time.Hour), []rollout.Change{{Item: "web", Kind: v1.ChangeUpdate}}, v1.ClusterBehind},
		{"its deadline is not over", movedAt(-30*time.Minute, "True", "Ready", -30*time.Minute), nil, v1.ClusterMoving},
		{"it was moved in this revision", movedAt(time.Second, "True", "Ready", time.Second), nil, v1.ClusterMoving},
	} {
		t.Run(test.why, func(t *testing.T) {
			got := ClusterStatusOf(Facts{Presence: Present, Mine: reportsOf(test.live), Changes: test.changes}, Course{
				Strategy: strategy, StartedAt: noon, Now: noon.Add(10 * time.Minute),
			})
			if got.State != test.want {
				t.Errorf("it is %s, want %s", got.State, test.want)
			}
		})
	}
}
