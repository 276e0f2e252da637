package rollout_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
)

// words are the standings by the words of the tables.
var words = map[string]rollout.ClusterStatus{
	"current": {State: v1.ClusterCurrent}, "moving": {State: v1.ClusterMoving}, "behind": {State: v1.ClusterBehind},
	"failed": {State: v1.ClusterFailed}, "sick": {State: v1.ClusterSick}, "away": {State: v1.ClusterAway},
	"new": {State: v1.ClusterNew}, "new-done": {State: v1.ClusterNew}, "blocked": {State: v1.ClusterBlocked, Blocked: true},
	"behind-sick": {State: v1.ClusterBehind, Sick: true}, "behind-held": {State: v1.ClusterBehind, Held: true},
	"moving-again": {State: v1.ClusterMoving, Again: true}, "current-blocked": {State: v1.ClusterCurrent, Blocked: true},
	"sick-blocked": {State: v1.ClusterSick, Blocked: true}, "away-blocked": {State: v1.ClusterAway, Blocked: true}, "lost": {State: v1.ClusterAway, Lost: true},
	"cordoned": ownReason(v1.ReasonUnschedulable), "full": ownReason(v1.ReasonQuotaExceeded),
	"cordoned-again": again(ownReason(v1.ReasonUnschedulable)), "full-again": again(ownReason(v1.ReasonQuotaExceeded)),
}

// again is a standing with a new target.
func again(status rollout.ClusterStatus) rollout.ClusterStatus {
	status.Again = true
	return status
}

// ownReason is the standing of a cluster that failed for a reason that may be its own.
func ownReason(reason string) rollout.ClusterStatus {
	return rollout.ClusterStatus{State: v1.ClusterSick, Cause: reason, Trouble: rollout.Trouble{Item: "web", Reason: reason}}
}

// tallied reads "current,behind | behind": groups, and in them clusters by their standing. Their names are c0, c1 …
// in that order.
func tallied(t testing.TB, groups string) *rollout.Tally {
	t.Helper()
	tally := rollout.NewTally("monitoring")
	made := 0
	for group, clusters := range strings.Split(groups, "|") {
		for word := range strings.FieldsFuncSeq(clusters, func(one rune) bool { return one == ',' || one == ' ' }) {
			status, found := words[word]
			if !found {
				t.Fatalf("no cluster is %s", word)
			}
			if status.Group = group; status.State == v1.ClusterNew && word != "new-done" {
				status.Group = rollout.NoGroup
			}
			tally.Put(fmt.Sprintf("c%d", made), status)
			made++
		}
	}
	return tally
}

// TestDecide: Each row of the table in "Waves" is a case, as far as counts and groups matter, with the states of
// groups and the reason. The test fails when a case opens a group that it should not open, or holds one that it
// should not hold.
func TestDecide(t *testing.T) {
	const byRule = rollout.ByRule
	spec := &v1.Rollout{Pace: v1.Pace{MaxConcurrency: of(2), MaxFailures: of(1)}, Groups: []v1.RolloutGroup{ring("canary", "0")}}
	strict, lenient := spec.DeepCopy(), spec.DeepCopy()
	strict.MaxFailures, lenient.MaxFailures = nil, of(2)
	approved, automatic := spec.DeepCopy(), spec.DeepCopy()
	approved.Groups[0].Start = v1.StartApproved
	automatic.Groups = append(automatic.Groups, ring("early", "1"))
	later := spec.DeepCopy()
	later.Groups = append(later.Groups, ring("early", "1"))
	later.Groups[1].Start = v1.StartApproved
	for _, test := range []struct {
		why, clusters string
		spec          *v1.Rollout
		gate          rollout.Allowance
		states, moved string
		reason        string
	}{
		{"no clusters", "", spec, byRule, "Done,Done", "", v1.ReasonComplete},
		{"all current", "current | current", spec, byRule, "Done,Done", "", v1.ReasonComplete},
		{"the canary moves first", "behind | behind", spec, byRule, "Open,Waiting", "c0", v1.ReasonRollingOut},
		{"as many as there are places", "behind,behind,behind |", spec, byRule, "Open,Done", "c2 c0", v1.ReasonRollingOut},
		{"moving ones hold places", "moving,behind,behind |", spec, byRule, "Open,Done", "c2", v1.ReasonRollingOut},
		{"more moving than may, after an edit", "moving,moving,moving,behind |", spec, byRule, "Open,Done", "", v1.ReasonRollingOut},
		{"moving ones hold up the next group", "moving | behind", spec, byRule, "Open,Waiting", "", v1.ReasonRollingOut},
		{"moving ones of a later group hold up nobody before it", "behind | moving", spec, byRule, "Open,Waiting", "c0", v1.ReasonRollingOut},
		{"a success opens the next group", "current | behind", spec, byRule, "Done,Open", "c1", v1.ReasonRollingOut},
		{"failures within the limit open it too, beside a success", "current,failed | behind", spec, byRule, "Done,Open", "c2", v1.ReasonRollingOut},
		{"above it nothing moves", "current,failed,failed | behind", spec, byRule, "Halted,Waiting", "", v1.ReasonHalted},
		{"nor in the same group", "failed,failed,behind | current", spec, byRule, "Halted,Done", "", v1.ReasonHalted},
		{"nor in an earlier one", "behind | failed,failed", spec, byRule, "Waiting,Halted", "", v1.ReasonHalted},
		{"one failure in each group is within their limits", "current,failed | failed,behind", spec, byRule, "Done,Open", "c3", v1.ReasonRollingOut},
		{"sick ones are no failure", "current,sick,sick,sick | behind", spec, byRule, "Done,Open", "c4", v1.ReasonRollingOut},
		{"one that was cut off holds nobody up", "lost,behind,behind |", spec, byRule, "Open,Done", "c2 c1", v1.ReasonRollingOut},
		{"the second takes a place", "lost,lost,behind |", spec, byRule, "Open,Done", "c2", v1.ReasonRollingOut},
		{"those that a revision cuts off use the places up", "lost,lost,lost,behind |", spec, byRule, "Open,Done", "", v1.ReasonRollingOut},
		{"unless others have it", "lost,lost,lost,current,behind |", spec, byRule, "Open,Done", "c4", v1.ReasonRollingOut},
		{"they are no evidence", "lost | behind", spec, byRule, "NoEvidence,Waiting", "", v1.ReasonNoEvidence},
		{"and turn no set red", "lost |", spec, byRule, "NoEvidence,Done", "", v1.ReasonComplete},
		{"a canary that is cordoned halts nobody, and shows nothing", "cordoned | behind", strict, byRule, "NoEvidence,Waiting", "", v1.ReasonNoEvidence},
		{"beside a good one the next group opens", "cordoned,current | behind", strict, byRule, "Done,Open", "c2", v1.ReasonRollingOut},
		{"two for the same reason are the revision's", "cordoned,cordoned | behind", strict, byRule, "Halted,Waiting", "", v1.ReasonHalted},
		{"beside a good one too", "cordoned,cordoned,current | behind", strict, byRule, "Halted,Waiting", "", v1.ReasonHalted},
		{"in whatever groups", "cordoned,current | cordoned,behind", strict, byRule, "Halted,Halted", "", v1.ReasonHalted},
		{"two for reasons of their own are not", "cordoned,full,current | behind", strict, byRule, "Done,Open", "c3", v1.ReasonRollingOut},
		{"nor one beside a sick one", "cordoned,sick,current | behind", strict, byRule, "Done,Open", "c3", v1.ReasonRollingOut},
		{"maxFailures is for them too", "cordoned,cordoned,current | behind", lenient, byRule, "Done,Open", "c3", v1.ReasonRollingOut},
		{"one that lacks something gets it", "cordoned-again,current |", lenient, byRule, "Done,Done", "c0", v1.ReasonComplete},
		{"two are failed, and get nothing", "cordoned-again,cordoned-again,full-again,current |", lenient, byRule, "Done,Done", "c2", v1.ReasonComplete},
		{"all that is left is sick", "cordoned |", strict, byRule, "NoEvidence,Done", "", v1.ReasonNoEvidence},
		{"and no success", "sick | behind", spec, byRule, "NoEvidence,Waiting", "", v1.ReasonNoEvidence},
		{"a dead canary is no evidence", "away,away | behind", spec, byRule, "NoEvidence,Waiting", "", v1.ReasonNoEvidence},
		{"one failed within the limit is none", "failed | behind", spec, byRule, "NoEvidence,Waiting", "", v1.ReasonNoEvidence},
		{"away ones hold up nobody", "current,away | behind", spec, byRule, "Done,Open", "c2", v1.ReasonRollingOut},
		{"away ones are not written to", "away | current", spec, byRule, "NoEvidence,Done", "", v1.ReasonComplete},
		{"where nothing is current that is not complete", "away | failed", spec, byRule, "NoEvidence,NoEvidence", "", v1.ReasonNoEvidence},
		{"an empty group is none", "| behind", spec, byRule, "NoEvidence,Waiting", "", v1.ReasonNoEvidence},
		{"nor is one in the middle", "current | | behind", automatic, byRule, "Done,NoEvidence,Waiting", "", v1.ReasonNoEvidence},
		{"nor one in which nothing can be done", "blocked | behind", spec, byRule, "NoEvidence,Waiting", "", v1.ReasonNoEvidence},
		{"nor one that lacks an item everywhere", "current-blocked | behind", spec, byRule, "NoEvidence,Waiting", "", v1.ReasonNoEvidence},
		{"nor one of blocked and dead ones", "blocked,away,sick | behind", spec, byRule, "NoEvidence,Waiting", "", v1.ReasonNoEvidence},
		{"one cluster with all of it is enough", "current,current-blocked,blocked | behind", spec, byRule, "Done,Open", "c3", v1.ReasonRollingOut},
		{"also beside those in trouble that lack items", "current,sick-blocked,away-blocked | behind", spec, byRule, "Done,Open", "c3", v1.ReasonRollingOut},
		{"a new one that is done is enough", "new-done,away | behind", spec, byRule, "Done,Open", "c2", v1.ReasonRollingOut},
		{"but none that is on its way", "new,away | behind", spec, byRule, "NoEvidence,Waiting", "", v1.ReasonNoEvidence},
		{"what is there already needs no evidence", "| current", spec, byRule, "NoEvidence,Done", "", v1.ReasonComplete},
		{"a seed judges its failures alone", "| behind", spec, 2, "Done,Open", "c0", v1.ReasonRollingOut},
		{"nor blocked ones", "blocked | behind", spec, 2, "Done,Open", "c1", v1.ReasonRollingOut},
		{"without groups blocked ones hold up nobody", "blocked,current-blocked,behind", nil, byRule, "Open", "c2", v1.ReasonRollingOut},
		{"blocked items redden nothing beside one that has all", "current,current-blocked | blocked", spec, byRule, "Done,Done", "", v1.ReasonComplete},
		{"but where each lacks one", "current-blocked | blocked", spec, byRule, "NoEvidence,Done", "", v1.ReasonBlocked},
		{"all blocked", "blocked | blocked", spec, byRule, "NoEvidence,Done", "", v1.ReasonBlocked},
		{"without groups too", "blocked,blocked", nil, byRule, "Done", "", v1.ReasonBlocked},
		{"on a seed too", "blocked | blocked", spec, 2, "Done,Done", "", v1.ReasonBlocked},
		{"one that is away does not count", "blocked,away,away-blocked", nil, byRule, "NoEvidence", "", v1.ReasonBlocked},
		{"nor against those that have it", "current,away,away-blocked", nil, byRule, "Done", "", v1.ReasonComplete},
		{"all away", "away,away-blocked", nil, byRule, "NoEvidence", "", v1.ReasonComplete},
		{"a failure that may be, and blocked ones", "failed,blocked |", spec, byRule, "NoEvidence,Done", "", v1.ReasonNoEvidence},
		{"a new one and a blocked one", "new-done,blocked", nil, byRule, "Done", "", v1.ReasonComplete},
		{"new ones are in no group", "new,behind | new", spec, byRule, "Open,Done", "c1", v1.ReasonRollingOut},
		{"new ones alone", "new,new |", spec, byRule, "NoEvidence,Done", "", v1.ReasonComplete},
		{"sick ones move last", "behind-sick,behind-sick,behind,moving |", spec, byRule, "Open,Done", "c2", v1.ReasonRollingOut},
		{"but they move", "behind-sick,behind-sick |", spec, byRule, "Open,Done", "c0 c1", v1.ReasonRollingOut},
		{"what moves is written again in its place", "moving-again,moving,behind |", spec, byRule, "Open,Done", "c0", v1.ReasonRollingOut},
		{"within the places that there are by now", "moving-again,moving-again,moving-again,behind |", spec, byRule, "Open,Done", "c2 c0",
			v1.ReasonRollingOut},
		{"beside those that are written by now", "moving-again,moving-again,moving,moving |", spec, byRule, "Open,Done", "", v1.ReasonRollingOut},
		{"but not before the turn of its group", "moving | moving-again", spec, byRule, "Open,Waiting", "", v1.ReasonRollingOut},
		{"removals that wait take no place", "behind-held,behind,behind |", spec, byRule, "Open,Done", "c2 c1", v1.ReasonRollingOut},
		{"nor are they done", "behind-held,current | behind", spec, byRule, "Open,Waiting", "", v1.ReasonRemovalNeedsApproval},
		{"a group that waits for approval", "behind | behind", approved, byRule, "AwaitingApproval,Waiting", "", v1.ReasonAwaitingApproval},
		{"holds all after it, also if it is empty", "| behind", approved, byRule, "AwaitingApproval,Waiting", "", v1.ReasonAwaitingApproval},
		{"but nothing that is complete", "current | current", approved, byRule, "Done,Done", "", v1.ReasonComplete},
		{"approval comes when it is its turn", "behind | behind | behind", later, byRule, "Open,Waiting,Waiting", "c0", v1.ReasonRollingOut},
		{"and then it waits", "current | behind | behind", later, byRule, "Done,AwaitingApproval,Waiting", "", v1.ReasonAwaitingApproval},
		{"everything at once without rollout", "behind,behind,failed,failed,moving", nil, byRule, "Open", "c0 c1", v1.ReasonRollingOut},
		{"without a gate the first group", "behind | behind", spec, rollout.FirstOnly, "Open,Waiting", "c0", v1.ReasonRollingOut},
		{"and no other", "current | behind", spec, rollout.FirstOnly, "Done,Waiting", "", v1.ReasonRollingOut},
		{"not even that, if it is approved", "behind | behind", approved, rollout.FirstOnly, "AwaitingApproval,Waiting", "", v1.ReasonAwaitingApproval},
		{"a gate has approvals in it", "behind | behind", approved, 1, "Open,Waiting", "c0", v1.ReasonRollingOut},
		{"a gate is in order", "behind | behind", spec, 2, "Open,Waiting", "c0", v1.ReasonRollingOut},
		{"evidence is the master's", "away | behind", spec, 2, "NoEvidence,Open", "c1", v1.ReasonRollingOut},
		{"own failures halt, whatever the gate", "failed,failed | behind", spec, 2, "Halted,Waiting", "", v1.ReasonHalted},
		{"a gate that is shut", "behind | behind", spec, 0, "Waiting,Waiting", "", v1.ReasonHalted},
		{"what moves goes on under it", "moving | behind", spec, 0, "Waiting,Waiting", "", v1.ReasonRollingOut},
		{"a group that waits for the master's approval", "current | behind | behind", later, 1, "Done,AwaitingApproval,Waiting", "", v1.ReasonAwaitingApproval},
	} {
		t.Run(test.why, func(t *testing.T) {
			made, tally := strategy(t, test.spec), tallied(t, test.clusters)
			got := rollout.Decide(made, tally, test.gate)
			var states []string
			for _, state := range got.Groups {
				states = append(states, string(state))
			}
			if diff := cmp.Diff([]string{test.states, test.moved, test.reason},
				[]string{strings.Join(states, ","), strings.Join(got.Move, " "), got.Reason}); diff != "" {
				t.Errorf("(-want +got):\n%s%s", diff, got.Message)
			}
			if got.Message == "" || len(got.Message) > 512 {
				t.Errorf("message %q", got.Message)
			}
		})
	}
}

// TestTheOrderIsOfSetAndCluster fails when the same clusters move first in every set, or their order is not that of a
// hash.
func TestTheOrderIsOfSetAndCluster(t *testing.T) {
	order := func(set string) []string {
		tally := rollout.NewTally(set)
		for i := range 40 {
			tally.Put(fmt.Sprintf("c%d", i), rollout.ClusterStatus{State: v1.ClusterBehind})
		}
		return rollout.Decide(strategy(t, nil), tally, rollout.ByRule).Move
	}
	one, other := order("monitoring"), order("logging")
	if len(one) != 40 || slices.Equal(one, other) || !slices.Equal(one, order("monitoring")) || slices.IsSorted(one) {
		t.Errorf("orders are %v and %v", one, other)
	}
}

// TestASickClusterGetsWhatItLacksLast: A sick cluster with a new target gets it after all others of its group, within
// the places, also when later groups move. The test fails when it never does, when it moves before others or above
// the places, when it keeps the next group from opening, and when it moves in a halt.
func TestASickClusterGetsWhatItLacksLast(t *testing.T) {
	made := strategy(t, &v1.Rollout{Pace: v1.Pace{MaxConcurrency: of(1)}, Groups: []v1.RolloutGroup{
		{Name: "canary", ClusterSelector: &metav1.LabelSelector{}, Start: v1.StartAutomatic}}})
	tally := rollout.NewTally("monitoring")
	expect := func(why string, want ...string) {
		t.Helper()
		if got := rollout.Decide(made, tally, rollout.ByRule).Move; !slices.Equal(got, want) {
			t.Errorf("%s: %q move, want %q", why, got, want)
		}
	}
	late := rollout.ClusterStatus{State: v1.ClusterSick, Again: true}
	tally.Put("sick", late)
	tally.Put("good", rollout.ClusterStatus{State: v1.ClusterBehind})
	tally.Put("later", rollout.ClusterStatus{Group: 1, State: v1.ClusterBehind})
	expect("others first", "good")
	tally.Put("good", rollout.ClusterStatus{State: v1.ClusterCurrent})
	expect("the next group opens", "sick", "later")
	tally.Put("sick", rollout.ClusterStatus{State: v1.ClusterSick, Holds: true})
	tally.Put("sicker", late)
	expect("its place is taken", "later")
	tally.Put("sick", rollout.ClusterStatus{State: v1.ClusterCurrent})
	tally.Put("later", rollout.ClusterStatus{Group: 1, State: v1.ClusterFailed})
	expect("halted")
	tally.Put("later", rollout.ClusterStatus{Group: 1, State: v1.ClusterCurrent})
	expect("nothing else is left", "sicker")
}

// TestSickClustersAreNamed fails when a set that waits for evidence does not name the clusters that cause this, with
// their reasons; when it names those of other groups, or more than a few; and when one of two that had the same
// reason stays failed after the other recovered.
func TestSickClustersAreNamed(t *testing.T) {
	made := strategy(t, &v1.Rollout{Groups: []v1.RolloutGroup{ring("canary", "0"), ring("early", "1")}})
	tally := tallied(t, "cordoned | behind,full |")
	message := func() string { return rollout.Decide(made, tally, rollout.ByRule).Message }
	if got := message(); !strings.Contains(got, `no cluster of group "canary" has this revision: 1 is sick (c0: Unschedulable of item "web")`) ||
		strings.Contains(got, "c2") {
		t.Error(got)
	}
	tally.Put("c3", ownReason(v1.ReasonUnschedulable))
	if got := rollout.Decide(made, tally, rollout.ByRule); got.Reason != v1.ReasonHalted || tally.Troubled(made)[0].State != v1.ClusterFailed {
		t.Errorf("two with one reason: %+v", got)
	}
	tally.Drop("c3")
	if got := rollout.Decide(made, tally, rollout.ByRule); got.Reason != v1.ReasonNoEvidence {
		t.Errorf("one of them is gone: %+v", got)
	}
	for i := range 40 {
		tally.Put(fmt.Sprint(strings.Repeat("s", 250), i), rollout.ClusterStatus{State: v1.ClusterSick, Trouble: rollout.Trouble{Reason: v1.ReasonTimeout}})
	}
	if got := message(); !strings.Contains(got, "and 38 more") || len(got) > 512 {
		t.Errorf("%d bytes: %s", len(got), got)
	}
	for i := range 40 {
		tally.Put(fmt.Sprint("a", i), rollout.ClusterStatus{State: v1.ClusterSick, Trouble: rollout.Trouble{Reason: v1.ReasonTimeout}})
	}
	if rows := tally.Troubled(made); len(rows) != 50 || rows[0].Name != "c0" || rows[1].Name != "c2" {
		t.Errorf("where more are sick than are listed, those that the master counts are not among them: %+v", rows)
	}
}
