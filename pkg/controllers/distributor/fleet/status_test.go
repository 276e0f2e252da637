package fleet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/copies"
)

// Red when the status of 200 seeds, each with 50 failing clusters and texts as long as they may be, has more than 64 KiB.
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
	decided, err := decide(set, f)
	if err != nil {
		t.Fatal(err)
	}
	status := statusOf(set, f, &decided)
	if got := size(&status); got > statusBytes || got < statusBytes/8 {
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

// Red when copies are ordered to go that nobody let go, or the way back is open once one went.
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
			decided, err := decide(set, &facts{uid: "set", now: time.Unix(1000, 0), seeds: test.seeds})
			if err != nil {
				t.Fatal(err)
			}
			if decided.deleting != test.deleting || decided.gone != test.gone {
				t.Errorf("deleting %t, gone %t", decided.deleting, decided.gone)
			}
			for seed, order := range decided.orders {
				if order.Delete != test.deleting {
					t.Errorf("seed %s is ordered %+v", seed, order)
				}
			}
		})
	}
}

// Red when gates go down because a process that began anew has not heard all seeds.
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
		decided, err := decide(set, f)
		if err != nil {
			t.Fatal(err)
		}
		if got := decided.orders["a"].Gate; got != test.gate {
			t.Errorf("gate %q, want %q", got, test.gate)
		}
	}
}
