package rollout_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
)

// in is the standing of a cluster with this trouble with item web.
func in(state v1.ClusterState, reason, message string) rollout.ClusterStatus {
	return rollout.ClusterStatus{
		State: state, Blocked: state == v1.ClusterBlocked, Trouble: rollout.Trouble{Item: "web", Reason: reason, Message: message},
	}
}

// TestMessagesNameClusters: A set whose Ready is False names clusters with their reasons and items, on a seed and on
// the master. The test fails when it names none, those of other states, groups or seeds, more than three, or does not
// count the others; when it repeats a user cluster's text about a failure; and when the same clusters give another
// message.
func TestMessagesNameClusters(t *testing.T) {
	made := strategy(t, &v1.Rollout{Groups: []v1.RolloutGroup{ring("canary", "0")}})
	percent := strategy(t, &v1.Rollout{Pace: v1.Pace{MaxFailures: of("10%")}, Groups: []v1.RolloutGroup{ring("canary", "0")}})
	unknown := in(v1.ClusterBlocked, v1.ReasonAddonUnknown, `no catalogue has add-on "weeb": did you mean "web"?`)
	failed, cordoned := in(v1.ClusterFailed, v1.ReasonRolledBack, "words of a user cluster"), ownReason(v1.ReasonUnschedulable)
	late := failed
	late.Group = 1
	type clusters map[string]rollout.ClusterStatus
	within := clusters{"birch": failed} // one of ten, the maximum that may fail
	for i := range 9 {
		within[fmt.Sprint("good", i)] = rollout.ClusterStatus{State: v1.ClusterCurrent}
	}
	for _, test := range []struct {
		why          string
		strategy     rollout.Strategy
		seeds        []clusters
		reason       string
		seed, master string
	}{
		{
			why: "all are blocked", strategy: made, seeds: []clusters{{"birch": unknown, "amber": unknown}}, reason: v1.ReasonBlocked,
			seed: `2 are blocked (amber: AddonUnknown of item "web": no catalogue has add-on "weeb": did you mean "web"?; birch: AddonUnknown of item "web")`,
		},
		{
			why: "beside one whose owner is away", strategy: made, reason: v1.ReasonBlocked,
			seeds: []clusters{{"amber": in(v1.ClusterAway, v1.ReasonPaused, ""), "birch": unknown}},
			seed:  `1 is blocked (birch: AddonUnknown of item "web": no catalogue has add-on "weeb": did you mean "web"?)`,
		},
		{
			why: "more than three", strategy: made, reason: v1.ReasonBlocked,
			seeds: []clusters{{"a": unknown, "b": unknown, "c": unknown, "d": unknown, "e": unknown}},
			seed:  `c: AddonUnknown of item "web"; and 2 more)`,
		},
		{
			why: "halted", strategy: made, seeds: []clusters{{"amber": failed, "birch": unknown, "cedar": late}}, reason: v1.ReasonHalted,
			seed: `1 of 2 clusters in group "canary" failed (amber: RolledBack of item "web"), and maxFailures allows 0`,
		},
		{
			why: "halted, since two have the same reason of their own", strategy: made, reason: v1.ReasonHalted,
			seeds:  []clusters{{"amber": cordoned}, {"birch": cordoned}},
			master: `failed (amber: Unschedulable of item "web"; birch: Unschedulable of item "web"), and`,
		},
		{
			why: "halted, by the share of one seed", strategy: percent, reason: v1.ReasonHalted,
			seeds:  []clusters{within, {"cedar": failed}},
			master: `in group "canary" on seed "s1" failed (cedar: RolledBack of item "web"), and`,
		},
		{
			why: "none shows that the revision works", strategy: made, reason: v1.ReasonNoEvidence,
			seeds: []clusters{{"amber": in(v1.ClusterSick, v1.ReasonTimeout, "words of a user cluster"), "birch": unknown}},
			seed:  `1 is sick, 1 is blocked (amber: Timeout of item "web"; birch: AddonUnknown of item "web")`,
		},
		{
			why: "texts without end", strategy: made, reason: v1.ReasonBlocked, seeds: []clusters{{strings.Repeat("a", 250): {
				State: v1.ClusterBlocked, Blocked: true,
				Trouble: rollout.Trouble{Item: strings.Repeat("i", 500), Reason: strings.Repeat("r", 500), Message: strings.Repeat("m", 5000)},
			}}},
			seed: "1 is blocked (aaa",
		},
	} {
		var rows []rollout.Row
		for i, some := range test.seeds {
			tally := rollout.NewTally("monitoring")
			for name, status := range some {
				tally.Put(name, status)
			}
			decision := rollout.Decide(test.strategy, tally, rollout.ByRule)
			if len(test.seeds) == 1 && (decision.Reason != test.reason || !strings.Contains(decision.Message, test.seed)) {
				t.Errorf("%s: the seed says %s: %s", test.why, decision.Reason, decision.Message)
			}
			rows = append(rows, rollout.Row{
				Seed: fmt.Sprint("s", i), State: rollout.RowSynced, Since: time.Unix(0, 0), Revision: "rev", Counts: tally.Counts(),
				Groups: tally.GroupStatuses(test.strategy, decision), Reason: decision.Reason, Clusters: tally.Troubled(test.strategy),
			})
		}
		got := gate(test.strategy, rows, rollout.NoGroup, time.Unix(0, 0))
		if got.Reason != test.reason || !strings.Contains(got.Message, test.seed+test.master) || strings.Contains(got.Message, "words of") ||
			len(got.Message) > 512 {
			t.Errorf("%s: the master says %s: %s", test.why, got.Reason, got.Message)
		}
		if again := gate(test.strategy, rows, rollout.NoGroup, time.Unix(0, 0)); again.Message != got.Message {
			t.Errorf("%s: then it says %s", test.why, again.Message)
		}
	}
}

// TestWhatToDoComesBeforeNames fails when a message with long names, which is cut at its end, does not begin with the
// advice.
func TestWhatToDoComesBeforeNames(t *testing.T) {
	made := strategy(t, &v1.Rollout{Groups: []v1.RolloutGroup{ring("canary", "0")}})
	tally := rollout.NewTally("monitoring")
	for i := range 3 {
		tally.Put(fmt.Sprint(strings.Repeat("a", 250), i), in(v1.ClusterSick, v1.ReasonTimeout, ""))
	}
	tally.Put("behind", rollout.ClusterStatus{State: v1.ClusterBehind, Group: 1})
	decision := rollout.Decide(made, tally, rollout.ByRule)
	row := rollout.Row{
		Seed: "s", State: rollout.RowSynced, Since: time.Unix(0, 0), Revision: "rev", Counts: tally.Counts(),
		Groups: tally.GroupStatuses(made, decision), Reason: decision.Reason, Clusters: tally.Troubled(made),
	}
	got := gate(made, []rollout.Row{row}, rollout.NoGroup, time.Unix(0, 0))
	if at := strings.Index(got.Message, `/rest): `); got.Reason != v1.ReasonNoEvidence || at < 0 || at > 100 {
		t.Errorf("%s: %s", got.Reason, got.Message)
	}
}
