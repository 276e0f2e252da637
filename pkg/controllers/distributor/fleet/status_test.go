package fleet

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/copies"
)

// RS34: The status of a set on 300 seeds, each with 50 failing clusters and texts as long as they may be, is bounded. Red when it has more
// than 64 KiB.
func TestTheStatusIsBoundedWithEveryClusterFailing(t *testing.T) {
	set := &v1.AddonSet{ObjectMeta: metav1.ObjectMeta{UID: "set", Name: "monitoring", Generation: 3}}
	f := &facts{Finding: Finding{Generation: 3}, uid: "set", now: time.Unix(1000, 0)}
	for i := range 300 {
		seed := seedFacts{name: fmt.Sprintf("%03d", i) + strings.Repeat("s", 200), heard: true, reached: true, synced: true}
		seed.row = copies.Row{UID: "set", There: true, Failure: strings.Repeat("f", 600), Status: v1.AddonSetStatus{
			Revision: strings.Repeat("r", 100), Counts: &v1.ClusterCounts{Selected: 50, Failed: 50},
			Groups: []v1.GroupStatus{{Name: v1.GroupRest, State: v1.GroupHalted, Counts: v1.ClusterCounts{Selected: 50, Failed: 50}}},
		}}
		for j := range 50 {
			seed.row.Status.Clusters = append(seed.row.Status.Clusters, v1.SetClusterStatus{
				Name: strings.Repeat("c", 240) + fmt.Sprint(j), State: v1.ClusterFailed, Item: strings.Repeat("i", 60),
				Reason: strings.Repeat("r", 120), Message: strings.Repeat("m", 500),
			})
			seed.row.Status.Pending = append(seed.row.Status.Pending, v1.PendingChange{
				Item: fmt.Sprint(i, j), Change: v1.ChangeUpdate, From: strings.Repeat("1", 120), To: strings.Repeat("2", 120),
				Clusters: 1, Example: strings.Repeat("e", 250),
			})
		}
		f.seeds = append(f.seeds, seed)
	}
	decided := decide(set, f)
	status := statusOf(set, f, &decided)
	encoded, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(encoded); got > 64<<10 || got < 8<<10 {
		t.Errorf("the status has %d bytes", got)
	}
	if status.Counts.Failed != 15_000 || len(status.Clusters) == 0 || len(status.Seeds) == 0 {
		t.Errorf("counts %+v, %d clusters, %d seeds", status.Counts, len(status.Clusters), len(status.Seeds))
	}
}

func heardFrom(name string, row copies.Row) seedFacts {
	row.UID = "set"
	return seedFacts{name: name, heard: true, reached: true, synced: true, row: row, since: time.Unix(1000, 0)}
}

// unreadable is a rollout that no schema refuses.
func unreadable() *v1.Rollout {
	odd := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "ring", Operator: "Odd"}}}
	return &v1.Rollout{Groups: []v1.RolloutGroup{{Name: "canary", ClusterSelector: odd}}}
}

// Red when copies change by a stub of their set, which may lack annotations and has no rollout, or when its deletion waits.
func TestAStubOrdersNothingButADeletion(t *testing.T) {
	t.Parallel()
	set := &v1.AddonSet{ObjectMeta: metav1.ObjectMeta{UID: "set", Name: "monitoring", Generation: 3}}
	set.Annotations = map[string]string{v1.AnnotationStub: "1048576", v1.AnnotationRemovalApproved: "1-word"}
	made := v1.AddonSetStatus{Revision: "r1", Counts: &v1.ClusterCounts{Selected: 1}, Removal: &v1.PendingRemoval{Word: "1-word", Count: 1}}
	f := &facts{
		Finding: Finding{Generation: 3, Reason: v1.ReasonTooLarge, Refusal: "it is not read"}, uid: "set", now: time.Unix(1000, 0),
		seeds: []seedFacts{heardFrom("a", copies.Row{There: true, Status: made})},
	}
	decided := decide(set, f)
	if len(decided.orders) > 0 || decided.deleting {
		t.Errorf("orders are %+v", decided.orders)
	}
	if reported := statusOf(set, f, &decided).Conditions[0]; reported.Reason != v1.ReasonTooLarge || reported.Message != f.Refusal {
		t.Errorf("it says %+v", reported)
	}
	set.DeletionTimestamp, set.Annotations[v1.AnnotationConfirmDeletion] = &metav1.Time{Time: time.Unix(900, 0)}, set.Name
	if decided = decide(set, f); !decided.orders["a"].Delete {
		t.Errorf("orders of a deletion are %+v", decided.orders)
	}
}

// Red when copies are ordered to go that nobody let go, the way back is open once one went, or a deletion stands still because of the
// set's rollout.
func TestOrdersToDelete(t *testing.T) {
	made := v1.AddonSetStatus{Counts: &v1.ClusterCounts{Selected: 1}}
	nothing := v1.AddonSetStatus{Counts: &v1.ClusterCounts{}}
	for _, test := range []struct {
		why            string
		living         bool
		confirmed      string
		seeds          []seedFacts
		deleting, gone bool
	}{
		{why: "a living set", living: true, confirmed: "monitoring", seeds: []seedFacts{heardFrom("a", copies.Row{There: true, Status: made})}},
		{why: "not confirmed", seeds: []seedFacts{heardFrom("a", copies.Row{There: true, Status: made})}},
		{why: "confirmed for another", confirmed: "other", seeds: []seedFacts{heardFrom("a", copies.Row{There: true, Status: made})}},
		{why: "confirmed", confirmed: "monitoring", seeds: []seedFacts{heardFrom("a", copies.Row{There: true, Status: made})}, deleting: true},
		{why: "it made nothing", seeds: []seedFacts{heardFrom("a", copies.Row{There: true, Status: nothing})}, deleting: true},
		{why: "a copy that was restored says nothing", seeds: []seedFacts{heardFrom("a", copies.Row{There: true})}},
		{why: "whether it made something is not known of a seed", seeds: []seedFacts{
			heardFrom("a", copies.Row{There: true, Status: nothing}), {name: "b"},
		}},
		{why: "begun, and the annotation was taken off", deleting: true,
			seeds: []seedFacts{heardFrom("a", copies.Row{There: true, Status: made, Confirmed: true})}},
		{why: "gone on one of two", confirmed: "monitoring", deleting: true,
			seeds: []seedFacts{heardFrom("a", copies.Row{Gone: true}), {name: "b"}}},
		{why: "gone on all", confirmed: "monitoring", deleting: true, gone: true, seeds: []seedFacts{heardFrom("a", copies.Row{Gone: true})}},
	} {
		t.Run(test.why, func(t *testing.T) {
			set := &v1.AddonSet{ObjectMeta: metav1.ObjectMeta{UID: "set", Name: "monitoring"}}
			if !test.living {
				set.DeletionTimestamp = &metav1.Time{Time: time.Unix(900, 0)}
			}
			set.Annotations = map[string]string{v1.AnnotationConfirmDeletion: test.confirmed}
			for _, rollout := range []*v1.Rollout{nil, unreadable()} {
				set.Spec.Rollout = rollout
				decided := decide(set, &facts{uid: "set", now: time.Unix(1000, 0), seeds: test.seeds})
				if decided.deleting != test.deleting || decided.gone != test.gone {
					t.Errorf("deleting %t, gone %t", decided.deleting, decided.gone)
				}
				for _, seed := range test.seeds {
					order, ordered := decided.orders[seed.name]
					if order.Delete != test.deleting || test.deleting && !ordered {
						t.Errorf("seed %s is ordered %+v with rollout %v", seed.name, order, rollout)
					}
				}
			}
		})
	}
}

// Red when gates go down because a process that began again has not heard all seeds.
func TestGatesWaitUntilAllSeedsWereHeard(t *testing.T) {
	said := v1.AddonSetStatus{
		Revision: "r1", Counts: &v1.ClusterCounts{Selected: 1, Current: 1},
		Groups: []v1.GroupStatus{{Name: v1.GroupRest, Counts: v1.ClusterCounts{Selected: 1, Current: 1}}},
	}
	set := &v1.AddonSet{ObjectMeta: metav1.ObjectMeta{UID: "set", Name: "monitoring"}}
	f := &facts{uid: "set", now: time.Unix(1000, 0), seeds: []seedFacts{
		heardFrom("a", copies.Row{There: true, Status: said}), {name: "b", since: time.Unix(999, 0)},
	}}
	for _, test := range []struct {
		now  time.Time
		gate string
	}{{time.Unix(1000, 0), ""}, {time.Unix(1000, 0).Add(time.Hour), "r1/1"}} {
		f.now = test.now
		decided := decide(set, f)
		if got := decided.orders["a"].Gate; got != test.gate {
			t.Errorf("gate %q, want %q", got, test.gate)
		}
	}
}

// Red when what a seed said that is left out is told, or approved, beside what is decided without it.
func TestASeedThatIsLeftOutCountsInNothing(t *testing.T) {
	said := func(revision, word string, began int64, count int32) copies.Row {
		counts := v1.ClusterCounts{Selected: count, Behind: count}
		return copies.Row{There: true, Status: v1.AddonSetStatus{
			Revision: revision, StartedAt: &metav1.Time{Time: time.Unix(began, 0)}, Counts: &counts, Groups: []v1.GroupStatus{{Name: v1.GroupRest, Counts: counts}},
			Pending: []v1.PendingChange{{Item: "web", Change: v1.ChangeRemove, Clusters: count}}, PendingCount: count,
			Clusters: []v1.SetClusterStatus{{Name: "c", State: v1.ClusterAway}}, Removal: &v1.PendingRemoval{Word: word, Count: count},
		}}
	}
	here, away := heardFrom("here", said("r2", "6-x", 100, 6)), heardFrom("away", said("r1", "7-y", 90, 7))
	away.reached, away.problem = false, "no answer"
	set := &v1.AddonSet{ObjectMeta: metav1.ObjectMeta{UID: "set", Name: "monitoring", CreationTimestamp: metav1.NewTime(time.Unix(50, 0))}}
	f := &facts{uid: "set", seeds: []seedFacts{here, away}}
	report := func(after time.Duration) (*decision, v1.AddonSetStatus) {
		f.now = time.Unix(1000, 0).Add(after)
		decided := decide(set, f)
		return &decided, statusOf(set, f, &decided)
	}

	_, status := report(time.Minute)
	if status.Revision == "r2" || status.PendingCount != 13 || status.Removal.Count != 13 || status.Counts.Selected != 13 || len(status.Clusters) != 2 {
		t.Errorf("while it is waited for: %+v", status)
	}
	both := status.Removal.Word
	_, status = report(time.Hour)
	if status.Revision != "r2" || status.PendingCount != 6 || len(status.Pending) != 1 || status.Pending[0].Clusters != 6 || status.Counts.Selected != 6 {
		t.Errorf("it counts: %+v", status)
	}
	if len(status.Clusters) != 1 || status.Clusters[0].Seed != "here" || status.StartedAt.Unix() != 100 || len(status.Seeds) != 2 {
		t.Errorf("it is told of: %+v", status)
	}
	if removal := status.Removal; removal == nil || removal.Word != "6-x" || removal.Count != 6 {
		t.Errorf("its removals are told: %+v", removal)
	}
	for word, approved := range map[string]string{"7-y": "", both: "6-x", status.Removal.Word: "6-x"} {
		set.Annotations = map[string]string{v1.AnnotationRemovalApproved: word}
		decided, _ := report(time.Hour)
		if got := decided.orders["here"].RemovalApproved; got != approved {
			t.Errorf("word %s approves %q here", word, got)
		}
		if got := decided.orders["away"].RemovalApproved; got != "" {
			t.Errorf("word %s approves %q on the seed that is left out", word, got)
		}
	}
}

// A seed's own admin shows another word for removals each time that it is asked. Red when that takes the approval of what waits on another
// seed, or when the set's status does not name the seed.
func TestASeedThatChangesItsTokenTakesNoApprovalFromOthers(t *testing.T) {
	said := func(word string) copies.Row {
		counts := v1.ClusterCounts{Selected: 6, Behind: 6}
		return copies.Row{There: true, Status: v1.AddonSetStatus{
			Revision: "r", Counts: &counts, Groups: []v1.GroupStatus{{Name: v1.GroupRest, Counts: counts}},
			Removal: &v1.PendingRemoval{Word: word, Count: 6, Clusters: []string{"c"}},
		}}
	}
	set := &v1.AddonSet{ObjectMeta: metav1.ObjectMeta{UID: "set", Name: "monitoring"}}
	f := &facts{uid: "set", now: time.Unix(1000, 0)}
	show := func(word string) (*decision, v1.AddonSetStatus) {
		f.seeds = []seedFacts{heardFrom("honest", said("6-x")), heardFrom("liar", said(word))}
		decided := decide(set, f)
		return &decided, statusOf(set, f, &decided)
	}
	_, status := show("6-0")
	for round := range 5 {
		set.Annotations = map[string]string{v1.AnnotationRemovalApproved: status.Removal.Word}
		var decided *decision
		decided, status = show(fmt.Sprintf("6-%d", round+1)) // another one before the approval arrived
		if got := decided.orders["honest"].RemovalApproved; got != "6-x" {
			t.Errorf("round %d: the honest seed is given %q", round, got)
		}
		if got := decided.orders["liar"].RemovalApproved; got != "" {
			t.Errorf("round %d: what nobody was shown is approved: %q", round, got)
		}
		if message := status.Conditions[0].Message; !strings.Contains(message, "does not approve the removals that wait on liar") {
			t.Errorf("round %d: %s", round, message)
		}
	}
}

// Red when a seed that stood is left out at once when it is lost, or when its set is edited, since nothing had happened for longer than
// the deadline.
func TestASeedIsWaitedForFromTheMomentItIsLost(t *testing.T) {
	now := time.Unix(1000, 0)
	name := types.NamespacedName{Namespace: "kubermatic", Name: "monitoring"}
	set := &v1.AddonSet{ObjectMeta: metav1.ObjectMeta{UID: "set", Name: name.Name}}
	passed := func(run int64) map[types.UID]Finding { return map[types.UID]Finding{"set": {Name: name, Run: run}} }
	said := func(run int64) copies.State {
		return copies.State{Seed: "a", Reached: true, Rows: map[string]copies.Row{name.Name: {UID: "set", Synced: true, Run: run, There: true}}}
	}
	l := &ledger{now: func() time.Time { return now }, states: map[string]copies.State{}}
	since := func() time.Duration {
		found, _ := l.facts(set)
		return now.Sub(found.seeds[0].since)
	}
	l.Passed(passed(1), []string{"a"})
	l.SeedChanged(said(1))
	now = now.Add(time.Hour)
	l.SeedChanged(copies.State{Seed: "a", Problem: "no answer"})
	if waited := since(); waited != 0 {
		t.Errorf("it counts as lost for %s", waited)
	}
	now = now.Add(time.Hour)
	l.Passed(passed(1), []string{"a"})
	l.SeedChanged(copies.State{Seed: "a", Problem: "no answer"})
	if waited := since(); waited != time.Hour {
		t.Errorf("an hour later it counts as lost for %s", waited)
	}
	l.SeedChanged(said(1))
	now = now.Add(time.Hour)
	l.Passed(passed(2), []string{"a"})
	if waited := since(); waited != 0 {
		t.Errorf("an edit was on its way for %s as soon as it was made", waited)
	}
	now = now.Add(time.Hour)
	l.Passed(passed(2), []string{"a"})
	l.SeedChanged(said(1))
	if waited := since(); waited != time.Hour {
		t.Errorf("an hour later it is on its way for %s", waited)
	}
}

// Red when a name in annotation leave-out that no cluster of the set has is not told, when it is told while seeds may not have listed all that
// are left out, and when an annotation that can't be read leaves anybody out or is not told.
func TestNamesThatLeaveOutNobodyAreReported(t *testing.T) {
	counts := v1.ClusterCounts{Selected: 2, Sick: 1, Current: 1}
	row := copies.Row{There: true, Status: v1.AddonSetStatus{
		Revision: "r", Counts: &counts, Groups: []v1.GroupStatus{{Name: v1.GroupRest, Counts: counts}},
		Clusters: []v1.SetClusterStatus{{Name: "amber", Group: v1.GroupRest, State: v1.ClusterSick, Reason: v1.ReasonLeftOut}},
	}}
	for _, test := range []struct {
		why, value, order, has string
		isLagging              bool
	}{
		{"all are known", "amber", "amber", "", false},
		{"one is not", "amber,brich", "amber,brich", "names clusters that the set does not have: brich", false},
		{"a seed may have it", "amber,brich", "amber,brich", "", true},
		{"an item is not", "amber:web", "amber:web", "names items that the set does not have: amber:web", false},
		{"it can't be read", "amber,,", "", "is not of the form", false},
	} {
		set := &v1.AddonSet{ObjectMeta: metav1.ObjectMeta{UID: "set", Name: "tools", Annotations: map[string]string{v1.AnnotationLeaveOut: test.value}}}
		f := &facts{uid: "set", now: time.Unix(1000, 0), seeds: []seedFacts{heardFrom("here", row)}}
		if test.isLagging {
			other := heardFrom("there", copies.Row{})
			other.synced = false
			f.seeds = append(f.seeds, other)
		}
		decided := decide(set, f)
		status := statusOf(set, f, &decided)
		message := status.Conditions[0].Message
		if isReported := strings.Contains(message, v1.AnnotationLeaveOut); isReported != (test.has != "") || !strings.Contains(message, test.has) {
			t.Errorf("%s: %s", test.why, message)
		}
		if got := decided.orders["here"].LeaveOut; got != test.order {
			t.Errorf("%s: the seed is told %q", test.why, got)
		}
	}
}
