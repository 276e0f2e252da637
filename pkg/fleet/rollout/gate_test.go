package rollout_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
)

// rowOf is the row of a seed whose clusters are as in tallied.
func rowOf(t testing.TB, made rollout.Strategy, seed, clusters string) rollout.Row {
	t.Helper()
	tally := tallied(t, clusters)
	decision := rollout.Decide(made, tally, rollout.Allowance(len(made.Groups)))
	return rollout.Row{
		Seed: seed, State: rollout.RowSynced, Since: time.Unix(0, 0), Revision: "rev", Counts: tally.Counts(),
		Groups: tally.GroupStatuses(made, decision), Reason: decision.Reason, Clusters: tally.Troubled(made),
	}
}

// gate is the master's decision by rows.
func gate(made rollout.Strategy, rows []rollout.Row, approved int, now time.Time) rollout.Fleet {
	return rollout.Gate(made, rollout.SelectRows(made, rows, now), approved)
}

// TestGate: Each case of the master's rule: rows are summed, and unknown rows open nothing. The test fails when a
// gate opens further than all seeds together allow, or a seed that is left out delays the others.
func TestGate(t *testing.T) {
	spec := &v1.Rollout{
		Pace:   v1.Pace{MaxFailures: of(1), ProgressDeadline: within(30)},
		Groups: []v1.RolloutGroup{ring("canary", "0"), ring("early", "1")},
	}
	strict, approved := spec.DeepCopy(), spec.DeepCopy()
	strict.MaxFailures = of(0)
	approved.Groups[1].Start = v1.StartApproved
	percent := spec.DeepCopy()
	percent.MaxFailures = of("34%")
	at := func(state rollout.RowState, minutes int, clusters string) func(rollout.Strategy, string) rollout.Row {
		return func(made rollout.Strategy, seed string) rollout.Row {
			row := rowOf(t, made, seed, clusters)
			row.State, row.Since = state, time.Unix(0, 0).Add(time.Duration(30-minutes)*time.Minute)
			return row
		}
	}
	synced := func(clusters string) func(rollout.Strategy, string) rollout.Row {
		return at(rollout.RowSynced, 30, clusters)
	}
	type seeds = []func(rollout.Strategy, string) rollout.Row
	for _, test := range []struct {
		why      string
		spec     *v1.Rollout
		rows     seeds
		approved int
		gate     int
		reason   string
		gated    string
	}{
		{"no seeds", spec, nil, rollout.NoGroup, 3, v1.ReasonComplete, ""},
		{"both did the canary", spec, seeds{synced("current | behind"), synced("current | behind")}, rollout.NoGroup, 2, v1.ReasonRollingOut, "ab"},
		{"one has it before it", spec, seeds{synced("current | behind"), synced("behind | behind")}, rollout.NoGroup, 1, v1.ReasonRollingOut, "ab"},
		{"one is at it", spec, seeds{synced("current | behind"), synced("moving | behind")}, rollout.NoGroup, 1, v1.ReasonRollingOut, "ab"},
		{"evidence of one is enough", spec, seeds{synced("away | behind"), synced("current | behind")}, rollout.NoGroup, 2, v1.ReasonRollingOut, "ab"},
		{"evidence of none", spec, seeds{synced("away | behind"), synced("sick | behind")}, rollout.NoGroup, 1, v1.ReasonNoEvidence, "ab"},
		{"and it is approved", spec, seeds{synced("away | behind"), synced("sick | behind")}, 1, 2, v1.ReasonRollingOut, "ab"},
		{"approval of a later one opens those before it, in order", spec, seeds{synced("away | behind | behind")}, 2, 2, v1.ReasonRollingOut, "a"},
		{"one failure is within the limit", spec, seeds{synced("failed | behind"), synced("current | behind")}, rollout.NoGroup, 2, v1.ReasonRollingOut, "ab"},
		{"1 + 1 are above it", spec, seeds{synced("failed | behind"), synced("failed | behind")}, rollout.NoGroup, 0, v1.ReasonHalted, "ab"},
		{"so are two on two seeds that fail for the same reason of their own", strict, seeds{synced("cordoned | behind"), synced("cordoned,current | behind")},
			rollout.NoGroup, 0, v1.ReasonHalted, "ab"},
		{"but not for two reasons", strict, seeds{synced("cordoned | behind"), synced("full,current | behind")}, rollout.NoGroup, 2, v1.ReasonRollingOut, "ab"},
		{"nor beside one that was sick before", strict, seeds{synced("cordoned | behind"), synced("sick,current | behind")}, rollout.NoGroup, 2, v1.ReasonRollingOut, "ab"},
		{"one alone shows nothing", strict, seeds{synced("cordoned | behind"), synced("| behind")}, rollout.NoGroup, 1, v1.ReasonNoEvidence, "ab"},
		{"a percentage is of each seed's, for these too", percent, seeds{synced("cordoned,current,current | behind"), synced("cordoned | behind")},
			rollout.NoGroup, 0, v1.ReasonHalted, "ab"},
		{"approval ends no halt", spec, seeds{synced("failed,failed | behind")}, 2, 0, v1.ReasonHalted, "a"},
		{"a percentage is of each seed's clusters", percent, seeds{synced("failed,current,current | behind"), synced("current,failed,current | behind")}, rollout.NoGroup, 2, v1.ReasonRollingOut, "ab"},
		{"one seed above it halts all, however many another has", percent, seeds{synced("current,failed,failed | behind"), synced("current,current,current,current | current")}, rollout.NoGroup, 0, v1.ReasonHalted, "ab"},
		{"what is left out halts nobody", percent, seeds{at(rollout.RowUnreached, 30, "failed | behind"), synced("current | behind")}, rollout.NoGroup, 2, v1.ReasonRollingOut, "b"},
		{"a group waits for approval", approved, seeds{synced("current | behind")}, rollout.NoGroup, 1, v1.ReasonAwaitingApproval, "a"},
		{"and has it", approved, seeds{synced("current | behind")}, 1, 2, v1.ReasonRollingOut, "a"},
		{"an earlier approval is none for it", approved, seeds{synced("current | behind")}, 0, 1, v1.ReasonAwaitingApproval, "a"},
		{"removals wait on a seed", spec, seeds{synced("behind-held"), synced("current")}, rollout.NoGroup, 1, v1.ReasonRemovalNeedsApproval, "ab"},
		{"a seed lags", spec, seeds{synced("current | behind"), at(rollout.RowLagging, 29, "current | behind")}, rollout.NoGroup, 1, v1.ReasonRollingOut, "a"},
		{"for too long", spec, seeds{synced("current | behind"), at(rollout.RowLagging, 30, "behind | behind")}, rollout.NoGroup, 2, v1.ReasonRollingOut, "a"},
		{"what lags has no failures that count", spec, seeds{synced("failed | current"), at(rollout.RowLagging, 1, "failed | current")}, rollout.NoGroup, 1, v1.ReasonRollingOut, "a"},
		{"one that is not reached is as it was", spec, seeds{synced("current | behind"), at(rollout.RowUnreached, 29, "current | behind")}, rollout.NoGroup, 2, v1.ReasonRollingOut, "a"},
		{"its failures too", spec, seeds{synced("failed | behind"), at(rollout.RowUnreached, 29, "failed | behind")}, rollout.NoGroup, 0, v1.ReasonHalted, "a"},
		{"not reached for too long", spec, seeds{synced("current | behind"), at(rollout.RowUnreached, 30, "behind | behind")}, rollout.NoGroup, 2, v1.ReasonRollingOut, "a"},
		{"complete but for one that is left out", spec, seeds{synced("current | current"), at(rollout.RowUnreached, 31, "behind")}, rollout.NoGroup, 3, v1.ReasonSeedsBehind, "a"},
		{"no seed answers", spec, seeds{at(rollout.RowUnreached, 31, "behind")}, rollout.NoGroup, 3, v1.ReasonSeedsBehind, ""},
		{"complete", spec, seeds{synced("current | current | away"), synced("|| current-blocked,new")}, rollout.NoGroup, 3, v1.ReasonComplete, "ab"},
	} {
		t.Run(test.why, func(t *testing.T) {
			made := strategy(t, test.spec)
			var rows []rollout.Row
			for i, row := range test.rows {
				rows = append(rows, row(made, string(rune('a'+i))))
			}
			got := gate(made, rows, test.approved, time.Unix(0, 0).Add(30*time.Minute))
			if got.Gate != test.gate || got.Reason != test.reason || strings.Join(got.Gated, "") != test.gated {
				t.Errorf("gate %d for %v, %s (%s)", got.Gate, got.Gated, got.Reason, got.Message)
			}
			if reported := len(got.Gated) + len(got.LeftOut) + len(got.Awaited); reported != len(rows) {
				t.Errorf("%d of %d rows are told: %+v", reported, len(rows), got)
			}
		})
	}
}

// TestAGroupThatSelectsNoClusterIsNamed: A typing error in a label makes a group that selects no cluster. The test
// fails when the fleet does not report it, whether the rollout moves, waits or is complete; when it does although
// clusters of the group may be on a seed that does not count; and when the message has no maximum length.
func TestAGroupThatSelectsNoClusterIsNamed(t *testing.T) {
	two := &v1.Rollout{Groups: []v1.RolloutGroup{ring("canary", "0"), ring("early", "1")}}
	many := &v1.Rollout{}
	for i := range 16 {
		many.Groups = append(many.Groups, ring(fmt.Sprintf("%s-%d", strings.Repeat("a", 55), i), fmt.Sprint(i)))
	}
	const canary, early = `group "canary" selects no cluster`, `group "early" selects no cluster`
	for _, test := range []struct {
		why      string
		spec     *v1.Rollout
		approved int
		rows     []string
		reason   string
		has, not []string
	}{
		{"it waits for an approval", two, rollout.NoGroup, []string{"| behind |"}, v1.ReasonNoEvidence, []string{canary, `group "early" waits (to open it, set annotation`}, []string{early}},
		{"of the group that has something to move", two, rollout.NoGroup, []string{"|| behind"}, v1.ReasonNoEvidence,
			[]string{canary, early, `group "rest" waits (to open it, set annotation`}, nil},
		{"blocked ones are counted", two, rollout.NoGroup, []string{"blocked | current | behind", "away | current |"}, v1.ReasonNoEvidence,
			[]string{`no cluster of group "canary" has this revision: 1 is unreachable or paused, 1 is blocked`}, []string{canary}},
		{"it is approved and moves", two, 1, []string{"| behind |"}, v1.ReasonRollingOut, []string{canary}, nil},
		{"it is done", two, rollout.NoGroup, []string{"| current | current"}, v1.ReasonComplete, []string{"2 of 2 clusters have the revision", canary}, []string{early}},
		{"another seed has the clusters", two, rollout.NoGroup, []string{"| current |", "current ||"}, v1.ReasonComplete, nil, []string{canary, early}},
		{"rest may be empty", two, rollout.NoGroup, []string{"current | current |"}, v1.ReasonComplete, nil, []string{"selects no"}},
		{"the first of many", many, rollout.NoGroup, []string{strings.Repeat("|", 16) + "behind"}, v1.ReasonNoEvidence, []string{"and 13 more", "/rest): "}, nil},
		{"without groups", nil, rollout.NoGroup, []string{"current"}, v1.ReasonComplete, nil, []string{"selects no"}},
	} {
		made := strategy(t, test.spec)
		var rows []rollout.Row
		for i, clusters := range test.rows {
			rows = append(rows, rowOf(t, made, string(rune('a'+i)), clusters))
		}
		got := gate(made, rows, test.approved, time.Unix(0, 0))
		isWrong := got.Reason != test.reason || len(got.Message) > 512
		for _, text := range test.has {
			isWrong = isWrong || !strings.Contains(got.Message, text)
		}
		for _, text := range test.not {
			isWrong = isWrong || strings.Contains(got.Message, text)
		}
		if isWrong {
			t.Errorf("%s: %s: %s", test.why, got.Reason, got.Message)
		}
	}
	made := strategy(t, two)
	lost := rowOf(t, made, "b", "current ||")
	lost.State = rollout.RowUnreached
	got := gate(made, []rollout.Row{rowOf(t, made, "a", "| current |"), lost}, rollout.NoGroup, time.Unix(0, 0).Add(time.Hour))
	if strings.Contains(got.Message, canary) {
		t.Errorf("with a seed that is left out: %s", got.Message)
	}
}

// TestWhatASetComesTo: The test covers the outcomes of a set, on a seed and on the master. The test fails when a set
// that installs nothing is complete, when one without any cluster is not, and when one cluster that is away turns the
// set of all others to False.
func TestWhatASetComesTo(t *testing.T) {
	made := strategy(t, nil)
	for _, test := range []struct {
		why      string
		clusters []string // of each seed; "-" is one with clusters that the set does not select
		reason   string
		message  string
	}{
		{"no seed has a cluster", []string{"", ""}, v1.ReasonComplete, "there is no cluster yet"},
		{"none is selected", []string{"-", ""}, v1.ReasonNoClusterSelected, "no cluster is selected: see spec.clusterSelector and spec.constraints"},
		{"one is, on another seed", []string{"-", "current"}, v1.ReasonComplete, "1 of 1 cluster has the revision"},
		{"all have it", []string{"current,current", "current"}, v1.ReasonComplete, "3 of 3 clusters have the revision"},
		{"some are blocked", []string{"current,current", "blocked,blocked"}, v1.ReasonComplete, "2 of 4 clusters have the revision, 2 are blocked"},
		{"all are", []string{"blocked", "blocked,current-blocked"}, v1.ReasonBlocked, "0 of 3 clusters have the revision, 3 are blocked"},
		{"one is, and the other's owner is away", []string{"blocked,away"}, v1.ReasonBlocked, "0 of 2 clusters have the revision, 1 is unreachable or paused, 1 is blocked"},
		{"its owner is away", []string{"away"}, v1.ReasonComplete, "0 of 1 cluster has the revision, 1 is unreachable or paused"},
		{"some are away", []string{"current,away,away"}, v1.ReasonComplete, "1 of 3 clusters have the revision, 2 are unreachable or paused"},
		{"all sorts", []string{"current,new,new-done,failed,sick,sick", "away,blocked,current-blocked"}, v1.ReasonComplete,
			"2 of 9 clusters have the revision, 1 is new, 1 failed, 2 are sick, 1 is unreachable or paused, 2 are blocked"},
		{"none shows that it works", []string{"failed,sick"}, v1.ReasonNoEvidence, "no cluster shows that the revision works: 0 of 2 clusters have the revision, 1 failed, 1 is sick"},
	} {
		var rows []rollout.Row
		for i, clusters := range test.clusters {
			tally := tallied(t, strings.Trim(clusters, "-"))
			tally.SetOthers(clusters == "-")
			decision := rollout.Decide(made, tally, 1)
			if len(test.clusters) == 1 && (decision.Reason != test.reason || decision.Message != test.message) {
				t.Errorf("%s: the seed says %s: %s", test.why, decision.Reason, decision.Message)
			}
			rows = append(rows, rollout.Row{
				Seed: string(rune('a' + i)), State: rollout.RowSynced, Since: time.Unix(0, 0), Revision: "rev", Counts: tally.Counts(),
				Groups: tally.GroupStatuses(made, decision), Reason: decision.Reason,
			})
		}
		if got := gate(made, rows, rollout.NoGroup, time.Unix(0, 0)); got.Reason != test.reason || got.Message != test.message {
			t.Errorf("%s: %s: %s", test.why, got.Reason, got.Message)
		}
	}
	silent := rollout.Row{Seed: "b", State: rollout.RowLagging, Since: time.Unix(0, 0)}
	reported := gate(made, []rollout.Row{rowOf(t, made, "a", "current"), silent}, rollout.NoGroup, time.Unix(60, 0))
	if want := "1 of 1 cluster current, 0 moving, 0 behind; 1 of 2 seeds has not reported on this change yet: b"; reported.Message != want {
		t.Errorf("while a seed is awaited: %s", reported.Message)
	}
	none := gate(made, []rollout.Row{silent}, rollout.NoGroup, time.Unix(60, 0))
	if want := "1 of 1 seed has not reported on this change yet: b"; none.Message != want || none.Reason != v1.ReasonSeedsBehind {
		t.Errorf("while all are: %s: %s", none.Reason, none.Message)
	}
}

// TestHostileRows: Seeds may belong to others. The test fails when negative numbers hide failures of others, sums
// become negative, unknown groups count or texts and lists are not limited.
func TestHostileRows(t *testing.T) {
	made := strategy(t, &v1.Rollout{Groups: []v1.RolloutGroup{ring("canary", "0")}})
	honest, liar, huge := rowOf(t, made, "a", "failed | behind"), rowOf(t, made, "b", "|"), rowOf(t, made, "c", "|")
	liar.Groups[0].Counts.Failed, liar.Groups[1].Counts.Behind, liar.Counts.Selected = -5, -5, -5
	got := gate(made, []rollout.Row{honest, liar}, rollout.NoGroup, time.Unix(0, 0))
	if got.Reason != v1.ReasonHalted || got.Gate != 0 || got.Counts.Selected != 2 {
		t.Errorf("numbers below zero: %+v", got)
	}
	huge.Groups[0].Counts = v1.ClusterCounts{Selected: math.MaxInt32, Behind: math.MaxInt32}
	huge.Counts = huge.Groups[0].Counts
	got = gate(made, []rollout.Row{huge, huge}, rollout.NoGroup, time.Unix(0, 0))
	if got.Counts.Behind != 200_000 || got.Counts.Selected != 200_000 || got.Gate != 1 {
		t.Errorf("large numbers: %+v", got)
	}
	for why, groups := range map[string][]v1.GroupStatus{
		"none": nil, "others": {{Name: "x"}, {Name: "rest"}}, "many": make([]v1.GroupStatus, 100000),
	} {
		odd := rowOf(t, made, "b", "current | current")
		odd.Groups = groups
		got = gate(made, []rollout.Row{rowOf(t, made, "a", "current | behind"), odd}, rollout.NoGroup, time.Unix(0, 0))
		if got.Gate != 1 || !slices.Equal(got.Awaited, []string{"b"}) {
			t.Errorf("%s: %+v", why, got)
		}
	}
	long := strings.Repeat("ü\n", 1<<20)
	rows := rollout.SumClusters(map[string][]v1.SetClusterStatus{
		"a": slices.Repeat([]v1.SetClusterStatus{{Name: long, State: v1.ClusterFailed, Item: long, Reason: long, Message: long, Cause: long}}, 1000),
		"b": {{Name: "odd", State: "Broken"}},
	})
	if len(rows) != 50 || len(rows[0].Message) > 512 || len(rows[0].Item) > 63 || len(rows[0].Name) > 253 || strings.Contains(rows[0].Reason, "\n") {
		t.Errorf("%d rows, the first %d bytes", len(rows), len(rows[0].Message))
	}
	var pending []v1.PendingChange
	for i := range 1000 {
		pending = append(pending, v1.PendingChange{Item: long[:i], Change: v1.ChangeInstall, Clusters: math.MaxInt32, Example: long})
	}
	changes := rollout.SumPending(pending, pending, nil)
	if len(changes) > 50 || changes[0].Clusters != math.MaxInt32 || len(changes[0].Example) > 253 {
		t.Errorf("%d changes, the first %d clusters", len(changes), changes[0].Clusters)
	}
}

// TestTheFleetsRevision fails when the fleet's revision changes although no seed's does, does not change although one
// does, or depends on a seed that does not count.
func TestTheFleetsRevision(t *testing.T) {
	made := strategy(t, &v1.Rollout{Pace: v1.Pace{ProgressDeadline: within(30)}})
	revisionOf := func(state rollout.RowState, minutes int, revisions ...string) string {
		var rows []rollout.Row
		for i, revision := range revisions {
			row := rowOf(t, made, fmt.Sprint(i), "current")
			row.Revision = revision
			rows = append(rows, row)
		}
		last := &rows[len(rows)-1]
		last.State, last.Since = state, time.Unix(0, 0).Add(-time.Duration(minutes)*time.Minute)
		fleet := rollout.SelectRows(made, rows, time.Unix(0, 0))
		return fleet.Revision()
	}
	synced := func(revisions ...string) string { return revisionOf(rollout.RowSynced, 0, revisions...) }
	if got := synced("x", "", "x"); got != "x" {
		t.Errorf("of one: %q", got)
	}
	both := synced("x", "y")
	if both != synced("y", "x", "y") || both == "x" || both == synced("x", "z") {
		t.Errorf("of two: %q", both)
	}
	if got := revisionOf(rollout.RowLagging, 1, "x", "old"); got != "x" {
		t.Errorf("one lags: %q", got)
	}
	if got := revisionOf(rollout.RowUnreached, 29, "x", "y"); got != both {
		t.Errorf("one is not reached: %q", got)
	}
	if got := revisionOf(rollout.RowUnreached, 30, "x", "y"); got != "x" {
		t.Errorf("one is left out: %q", got)
	}
}

// TestNoSeedExcusesFailuresOfOthers: The numbers of one seed do not affect the limit for failures of others. The test
// fails when a seed that claims any number of clusters, or fewer than it has in states, moves the limit of a
// percentage.
func TestNoSeedExcusesFailuresOfOthers(t *testing.T) {
	made := strategy(t, &v1.Rollout{Pace: v1.Pace{MaxFailures: of("34%")}, Groups: []v1.RolloutGroup{ring("canary", "0")}})
	failing := rowOf(t, made, "a", "failed,failed,current | behind")
	for why, claims := range map[string]v1.ClusterCounts{
		"selected":              {Selected: math.MaxInt32},
		"current":               {Selected: math.MaxInt32, Current: math.MaxInt32},
		"fewer than has failed": {Selected: 1, Failed: 3},
		"below zero":            {Selected: math.MinInt32, Current: math.MinInt32, Failed: math.MinInt32},
		"blocked":               {Selected: math.MaxInt32, Blocked: math.MaxInt32},
	} {
		liar := rowOf(t, made, "b", "|")
		liar.Groups[0].Counts, liar.Counts = claims, claims
		got := gate(made, []rollout.Row{liar, failing}, rollout.NoGroup, time.Unix(0, 0))
		if got.Gate != 0 || got.Reason != v1.ReasonHalted || got.Groups[0].State != v1.GroupHalted {
			t.Errorf("%s: gate %d, %s (%s)", why, got.Gate, got.Reason, got.Message)
		}
		if selected := got.Groups[0].Counts.Selected; selected < 3 || selected > 100_003 || got.Counts.Selected < selected {
			t.Errorf("%s: counts %+v in group canary, %+v in all", why, got.Groups[0].Counts, got.Counts)
		}
	}
	alone := rowOf(t, made, "b", "|")
	alone.Groups[0].Counts = v1.ClusterCounts{Selected: math.MaxInt32, Failed: 1}
	if got := gate(made, []rollout.Row{alone}, rollout.NoGroup, time.Unix(0, 0)); got.Gate != 0 || !strings.Contains(got.Message, `seed "b"`) {
		t.Errorf("clusters in no state excuse a failure: gate %d, %s", got.Gate, got.Message)
	}
}

// two is a platform of two seeds, with a canary and some others on each, at the end of its first revision.
func two(t *testing.T, failures int) *platform {
	p := newPlatform(t, 1, 2, &v1.Rollout{
		Pace:   v1.Pace{MaxConcurrency: of(1), MaxFailures: of(failures), Soak: within(1), ProgressDeadline: within(8)},
		Groups: []v1.RolloutGroup{ring("canary", "0")},
	})
	for seed := range 2 {
		for i := range 5 {
			p.add(seed, min(i/2, 1))
		}
	}
	p.now++
	p.revision = 1
	p.settle()
	if p.reason() != v1.ReasonComplete {
		t.Fatalf("it begins with %s", p.reason())
	}
	p.granted = nil
	return p
}

// rings are the groups of the clusters that moved.
func (p *platform) rings() (rings []int) {
	for _, name := range p.granted {
		rings = append(rings, p.members[name].ring)
	}
	return rings
}

// TestAGroupOpensOnNoSeedBeforeAllDidTheOneBefore: Two seeds, one master. The test fails when a group opens on one
// seed before all seeds finished the previous one.
func TestAGroupOpensOnNoSeedBeforeAllDidTheOneBefore(t *testing.T) {
	p := two(t, 1)
	p.revision++
	for range 200 {
		p.live(1)
		for i, s := range p.seeds {
			p.sync(s)
			p.recount(s)
			if i == 0 || p.chance.Intn(4) == 0 { // the second seed is slow
				p.decide(s)
			}
			p.report(s)
		}
		p.evaluate(func() bool { return false })
	}
	if rings := p.rings(); len(rings) != 10 || !slices.IsSorted(rings) {
		t.Errorf("clusters of these rings moved, one after another: %v", rings)
	}
}

// TestFailuresOfTwoSeedsHaltBoth fails when failures on two seeds, within the limit on each, don't halt both.
func TestFailuresOfTwoSeedsHaltBoth(t *testing.T) {
	p := two(t, 1)
	p.outcome = func(m *member, revision int) string {
		if revision == 2 && (m.name == "cluster-1" || m.name == "cluster-6") {
			return "rollback"
		}
		return "ok"
	}
	p.revision++
	p.settle()
	if p.reason() != v1.ReasonHalted || slices.Contains(p.rings(), 1) {
		t.Errorf("%s, rings %v", p.reason(), p.rings())
	}
	p.outcome = func(*member, int) string { return "ok" }
	p.revision++
	p.settle()
	if p.reason() != v1.ReasonComplete {
		t.Errorf("the fix ends in %s", p.reason())
	}
}

// TestASeedThatIsCutOffHasItsLastGateAndItsOwnFailures (RS03, RS21): A seed that is cut off continues within its last
// gate, and halts on its own failures. The test fails when it moves past the gate, stops before it, or continues
// after failures.
func TestASeedThatIsCutOffHasItsLastGateAndItsOwnFailures(t *testing.T) {
	p := two(t, 0)
	p.revision++
	for !strings.HasSuffix(p.seeds[0].gate, "r2/2") {
		p.live(1)
		p.round()
	}
	before := len(p.granted)
	p.alive = false
	p.settle()
	if len(p.granted) != 10 || before == 10 {
		t.Errorf("%d moved, %d of them with the master", len(p.granted), before)
	}
	p.granted = nil
	p.revision++ // the seeds learn it from their catalogues
	p.settle()
	if !cmp.Equal(p.rings(), []int{0, 0, 0, 0}) {
		t.Errorf("without a gate for the revision these rings moved: %v", p.rings())
	}
	p.outcome = func(*member, int) string { return "rollback" }
	p.granted = nil
	p.revision++
	p.settle()
	if !cmp.Equal(p.rings(), []int{0, 0}) || p.seeds[0].decision.Reason != v1.ReasonHalted {
		t.Errorf("rings %v moved, %s", p.rings(), p.seeds[0].decision.Reason)
	}
}

// TestASeedOutOfReachIsLeftOut fails when an unreachable seed delays the others for longer than the deadline, or is
// not reported.
func TestASeedOutOfReachIsLeftOut(t *testing.T) {
	p := two(t, 1)
	p.seeds[1].cut = true
	p.revision++
	p.settle()
	if len(p.granted) != 5 || p.reason() != v1.ReasonSeedsBehind || !slices.Equal(p.fleet.LeftOut, []string{"seed-1"}) {
		t.Errorf("%d moved, %s: %s", len(p.granted), p.reason(), p.fleet.Message)
	}
	p.seeds[1].cut = false
	p.settle()
	if len(p.granted) != 10 || p.reason() != v1.ReasonComplete {
		t.Errorf("when it is back: %d moved, %s: %s", len(p.granted), p.reason(), p.fleet.Message)
	}
}

// TestClustersOfTwoSeedsWithOneReasonAreTheRevisions fails when a reason that a cluster may have of its own is not
// counted over seeds.
func TestClustersOfTwoSeedsWithOneReasonAreTheRevisions(t *testing.T) {
	made := strategy(t, nil)
	for _, reason := range []string{
		v1.ReasonUnschedulable, v1.ReasonRequestsTooLarge, v1.ReasonSchedulingGated, v1.ReasonQuotaExceeded, v1.ReasonLimitRange, v1.ReasonPodSecurity,
		v1.ReasonPolicyDenied, v1.ReasonWebhookRefused, v1.ReasonObjectOfOthers, v1.ReasonFieldOfOthers, v1.ReasonBeingDeleted,
	} {
		var rows []rollout.Row
		for _, seed := range []string{"amber", "birch"} {
			tally := rollout.NewTally("monitoring")
			tally.Put("c", ownReason(reason))
			tally.Put("good", rollout.ClusterStatus{State: v1.ClusterCurrent})
			decision := rollout.Decide(made, tally, rollout.ByRule)
			rows = append(rows, rollout.Row{
				Seed: seed, State: rollout.RowSynced, Counts: tally.Counts(), Groups: tally.GroupStatuses(made, decision),
				Clusters: tally.Troubled(made),
			})
		}
		if got := gate(made, rows[:1], rollout.NoGroup, time.Unix(0, 0)); got.Counts.Failed != 0 {
			t.Errorf("%s: one is a failure: %+v", reason, got.Counts)
		}
		if got := gate(made, rows, rollout.NoGroup, time.Unix(0, 0)); got.Counts.Failed != 2 {
			t.Errorf("%s: two are none: %+v", reason, got.Counts)
		}
	}
}
