package rollout_test

import (
	"fmt"
	"math/rand"
	"runtime"
	"strings"
	"testing"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
)

// large is a Tally of so many clusters, of all kinds, with five items each.
func large(clusters int) *rollout.Tally {
	chance := rand.New(rand.NewSource(int64(clusters)))
	tally := rollout.NewTally("monitoring")
	for i := range clusters {
		tally.Put(fmt.Sprintf("cluster-%06d", i), anyStatus(chance))
	}
	return tally
}

func anyStatus(chance *rand.Rand) rollout.ClusterStatus {
	states := []v1.ClusterState{
		v1.ClusterCurrent, v1.ClusterBehind, v1.ClusterBehind, v1.ClusterBehind, v1.ClusterMoving, v1.ClusterSick, v1.ClusterAway,
	}
	status := rollout.ClusterStatus{Group: chance.Intn(4), State: states[chance.Intn(len(states))], Sick: chance.Intn(9) == 0}
	for item := range 5 {
		status.Changes = append(status.Changes, rollout.Change{
			Item: fmt.Sprintf("item-%d", item), Kind: v1.ChangeUpdate, From: fmt.Sprintf("1.%d.0", chance.Intn(4)), To: "2.0.0",
		})
	}
	return status
}

// decided is an event between two writes of the status.
func decided(tally *rollout.Tally, made rollout.Strategy, name string, status rollout.ClusterStatus) {
	tally.Put(name, status)
	rollout.Decide(made, tally, rollout.ByRule)
}

// event is the maximum work for one event: the cluster's standing, a decision, and the status.
func event(tally *rollout.Tally, made rollout.Strategy, name string, status rollout.ClusterStatus) {
	tally.Put(name, status)
	rollout.Decide(made, tally, rollout.ByRule)
	tally.Troubled(made)
	tally.Pending()
}

// TestAnEventCostsTheSameInLargeFleets fails when an event at 10,000 clusters costs more than 1.5 times that at
// 1,000, counted in comparisons and in allocations.
func TestAnEventCostsTheSameInLargeFleets(t *testing.T) {
	work := func(clusters int, event func(*rollout.Tally, rollout.Strategy, string, rollout.ClusterStatus)) (comparisons, allocations float64) {
		tally, chance := large(clusters), rand.New(rand.NewSource(1))
		made := strategy(t, &v1.Rollout{Pace: v1.Pace{MaxConcurrency: of(1), MaxFailures: of(1000000)}})
		compared := tally.CountComparisons()
		const events = 3000
		allocations = testing.AllocsPerRun(events, func() {
			event(tally, made, fmt.Sprintf("cluster-%06d", chance.Intn(clusters)), anyStatus(chance))
		})
		return float64(*compared) / events, allocations
	}
	for what, event := range map[string]func(*rollout.Tally, rollout.Strategy, string, rollout.ClusterStatus){
		"with the status": event, "without": decided,
	} {
		fewCompared, fewAllocated := work(1000, event)
		manyCompared, manyAllocated := work(10000, event)
		t.Logf("%s: at 1,000 clusters %.1f comparisons and %.0f allocations an event, at 10,000 %.1f and %.0f",
			what, fewCompared, fewAllocated, manyCompared, manyAllocated)
		if manyCompared > 1.5*fewCompared || manyAllocated > 1.5*fewAllocated {
			t.Errorf("%s: an event costs more than 1.5 times as much in a fleet of ten times as many clusters", what)
		}
	}
}

// TestBytesOfACluster fails when a cluster in a Tally takes more than 1 KiB, in addition to its texts.
func TestBytesOfACluster(t *testing.T) {
	const clusters = 10000
	heap := func() uint64 {
		var memory runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&memory)
		return memory.HeapAlloc
	}
	measured := func(fill func(*rollout.Tally, int)) int {
		before := heap()
		tally := rollout.NewTally("monitoring")
		for i := range clusters {
			fill(tally, i)
		}
		after := heap()
		runtime.KeepAlive(tally)
		return int(after-before) / clusters
	}
	chance := rand.New(rand.NewSource(1))
	usual := measured(func(tally *rollout.Tally, i int) { tally.Put(fmt.Sprintf("cluster-%06d", i), anyStatus(chance)) })
	worst := measured(func(tally *rollout.Tally, i int) {
		status := anyStatus(chance)
		status.State = v1.ClusterFailed
		status.Trouble = rollout.Trouble{Item: "x", Reason: "y", Message: strings.Repeat("z", 100000)}
		tally.Put(fmt.Sprintf("cluster-%06d", i), status)
	})
	t.Logf("%d bytes a cluster with five changes, %d with the longest message", usual, worst)
	if usual > 1024 || worst > 2048 {
		t.Errorf("%d bytes a cluster, %d with the longest message", usual, worst)
	}
}

func BenchmarkEvent(b *testing.B) {
	for _, clusters := range []int{1000, 10000} {
		b.Run(fmt.Sprint(clusters), func(b *testing.B) {
			tally, chance := large(clusters), rand.New(rand.NewSource(1))
			statuses := make([]rollout.ClusterStatus, 64)
			for i := range statuses {
				statuses[i] = anyStatus(chance)
			}
			made := strategy(b, &v1.Rollout{Pace: v1.Pace{MaxConcurrency: of(1), MaxFailures: of(1000000)}})
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				event(tally, made, fmt.Sprintf("cluster-%06d", (i*7919)%clusters), statuses[i%64])
			}
		})
	}
}
