package rollout_test

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
)

// plain removes all properties of a cluster except its state, and puts it into the first group.
func plain(status rollout.ClusterStatus) rollout.ClusterStatus {
	status.Group = 0
	return status
}

// TestATallyIsThatOfANewOne: After any events, a Tally equals a new one of the same clusters. The test fails when an
// event leaves a part of the previous one, or removes a part of another cluster.
func TestATallyIsThatOfANewOne(t *testing.T) {
	made := strategy(t, nil)
	for id := range int64(200) {
		chance := rand.New(rand.NewSource(id))
		tally, known := rollout.NewTally("monitoring"), map[string]rollout.ClusterStatus{}
		for range 300 {
			name := fmt.Sprintf("c%d", chance.Intn(60))
			if chance.Intn(4) == 0 {
				tally.Drop(name)
				delete(known, name)
				continue
			}
			status := plain(anyStatus(chance))
			status.Changes = status.Changes[:chance.Intn(5)]
			status.Blocked = chance.Intn(5) == 0
			status.Again = status.State == v1.ClusterMoving && chance.Intn(2) == 0
			status.Held = status.State == v1.ClusterBehind && chance.Intn(4) == 0
			if status.State == v1.ClusterSick {
				status.Again, status.Holds = chance.Intn(2) == 0, chance.Intn(3) == 0
				status.Cause = []string{"", v1.ReasonUnschedulable, v1.ReasonQuotaExceeded, v1.ReasonLimitRange}[chance.Intn(4)]
			}
			tally.Put(name, status)
			known[name] = status
		}
		fresh := rollout.NewTally("monitoring")
		for name, status := range known {
			fresh.Put(name, status)
		}
		if diff := cmp.Diff(shown(fresh, made), shown(tally, made)); diff != "" {
			t.Fatalf("fleet %d (-new +old):\n%s", id, diff)
		}
		for name := range known {
			if !tally.Has(name) {
				t.Fatalf("fleet %d: %s is not there", id, name)
			}
			tally.Drop(name)
		}
		if left := shown(tally, made); !strings.HasPrefix(left[0], "0 ") || tally.Counts() != (v1.ClusterCounts{}) {
			t.Fatalf("fleet %d: without clusters there is left %v", id, left)
		}
	}
}

// shown is all output of a Tally except for the examples, which stay while they can.
func shown(tally *rollout.Tally, made rollout.Strategy) []string {
	pending, count := tally.Pending()
	for i := range pending {
		pending[i].Example = ""
	}
	return []string{
		fmt.Sprint(count, " ", pending), fmt.Sprintf("%+v", tally.Counts()), fmt.Sprintf("%+v", tally.Troubled(made)),
		fmt.Sprintf("%+v", rollout.Decide(made, tally, rollout.ByRule)),
	}
}

// TestClustersInTrouble fails when the failed ones are not listed first, more than 50 are listed, or a text isn't
// limited.
func TestClustersInTrouble(t *testing.T) {
	tally := rollout.NewTally("monitoring")
	long := strings.Repeat("é\x1b[31m", 10000)
	for i := range 40 {
		tally.Put(fmt.Sprintf("a%02d", i), rollout.ClusterStatus{State: v1.ClusterAway, Trouble: rollout.Trouble{Item: long, Reason: long, Message: long}})
		tally.Put(fmt.Sprintf("c%02d", i), rollout.ClusterStatus{State: v1.ClusterCurrent, Blocked: i == 7})
	}
	tally.Put("z", rollout.ClusterStatus{State: v1.ClusterFailed, Blocked: true, Trouble: rollout.Trouble{Item: "prometheus", Reason: "RolledBack"}})
	tally.Put("s", rollout.ClusterStatus{State: v1.ClusterSick})
	made := strategy(t, nil)
	rows := tally.Troubled(made)
	if len(rows) != 43 {
		t.Fatalf("%d rows", len(rows))
	}
	if want := (v1.SetClusterStatus{Name: "z", Group: v1.GroupRest, State: v1.ClusterFailed, Item: "prometheus", Reason: "RolledBack"}); rows[0] != want {
		t.Errorf("the first row is %+v", rows[0])
	}
	if rows[1].Name != "s" || rows[2].Name != "a00" || rows[42].Name != "c07" || rows[42].State != v1.ClusterBlocked {
		t.Errorf("rows are %+v", rows)
	}
	if row := rows[2]; len(row.Message) > 512 || len(row.Item) > 63 || len(row.Reason) > 128 || strings.Contains(row.Message, "\x1b") {
		t.Errorf("a row has %d bytes: %q", len(row.Message), row.Item)
	}
	for i := range 100 {
		tally.Put(fmt.Sprintf("f%02d", i), rollout.ClusterStatus{State: v1.ClusterFailed})
	}
	if rows = tally.Troubled(made); len(rows) != 50 || rows[49].Name != "f49" {
		t.Errorf("%d rows, the last %+v", len(rows), rows[len(rows)-1])
	}
}

// TestPendingChanges fails when equal changes are not combined, or more than 50 are listed.
func TestPendingChanges(t *testing.T) {
	tally := rollout.NewTally("monitoring")
	change := func(item, from, to string) rollout.Change {
		return rollout.Change{Item: item, Kind: v1.ChangeUpdate, From: from, To: to}
	}
	for i := range 10 {
		tally.Put(fmt.Sprintf("c%d", i), rollout.ClusterStatus{State: v1.ClusterBehind, Changes: []rollout.Change{
			change("prometheus", "2.0.0", "2.1.0"), change("loki", fmt.Sprintf("1.%d.0", i%2), "1.2.0"),
		}})
	}
	tally.Put("c0", rollout.ClusterStatus{State: v1.ClusterCurrent})
	changes, count := tally.Pending()
	want := []v1.PendingChange{
		{Item: "loki", Change: v1.ChangeUpdate, From: "1.0.0", To: "1.2.0", Clusters: 4, Example: changes[0].Example},
		{Item: "loki", Change: v1.ChangeUpdate, From: "1.1.0", To: "1.2.0", Clusters: 5, Example: "c1"},
		{Item: "prometheus", Change: v1.ChangeUpdate, From: "2.0.0", To: "2.1.0", Clusters: 9, Example: changes[2].Example},
	}
	if diff := cmp.Diff(want, changes); diff != "" || count != 18 {
		t.Errorf("%d changes (-want +got):\n%s", count, diff)
	}
	if changes[0].Example == "c0" || !slices.Contains([]string{"c2", "c4", "c6", "c8"}, changes[0].Example) {
		t.Errorf("%s is no example", changes[0].Example)
	}
	for i := range 100 {
		tally.Put(fmt.Sprintf("d%d", i), rollout.ClusterStatus{State: v1.ClusterBehind, Changes: []rollout.Change{change(fmt.Sprintf("x%d", i), "", "1")}})
	}
	if changes, count = tally.Pending(); len(changes) != 50 || count != 118 || changes[2].Item != "prometheus" {
		t.Errorf("%d of %d changes", len(changes), count)
	}
	tally.Put("c1", rollout.ClusterStatus{State: v1.ClusterBehind, Changes: make([]rollout.Change, 100000)})
	if _, count = tally.Pending(); count > 300 {
		t.Errorf("%d changes of one cluster are counted", count)
	}
}

// TestTheExampleOfAChangeStays: A status without a change is not written again. The test fails when the example of a
// change is replaced after events of any cluster, while the shown one has the change; and when the replacement is not
// the first by name.
func TestTheExampleOfAChangeStays(t *testing.T) {
	tally := rollout.NewTally("monitoring")
	behind := rollout.ClusterStatus{State: v1.ClusterBehind, Changes: []rollout.Change{{Item: "loki", Kind: v1.ChangeInstall, To: "1.2.0"}}}
	example := func() string {
		changes, _ := tally.Pending()
		return changes[0].Example
	}
	for _, name := range []string{"c3", "c5", "c2", "c4"} {
		tally.Put(name, behind)
	}
	if first := example(); first != "c2" {
		t.Fatalf("%s is shown first", first)
	}
	tally.Put("c1", behind)
	for i := range 50 {
		tally.Put(fmt.Sprintf("c%d", 1+i%5), behind)
		if now := example(); now != "c2" {
			t.Fatalf("%s is shown after event %d", now, i)
		}
	}
	tally.Put("c2", rollout.ClusterStatus{State: v1.ClusterCurrent})
	if now := example(); now != "c1" {
		t.Errorf("%s is shown where the first left", now)
	}
	tally.Drop("c1")
	if now := example(); now != "c3" {
		t.Errorf("%s is shown where another is gone", now)
	}
}
