package rollout_test

import (
	"fmt"
	"math/rand"
	"runtime"
	"strings"
	"testing"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/rollout"
)

// large makes a Tally of so many clusters, of all kinds, with five items each.
func large(clusters int) *rollout.Tally {
	chance := rand.New(rand.NewSource(int64(clusters)))
	tally := rollout.NewTally("monitoring")
	for i := range clusters {
		tally.Put(fmt.Sprintf("cluster-%06d", i), anyStanding(chance))
	}
	return tally
}

func anyStanding(chance *rand.Rand) rollout.Standing {
	states := []v1.ClusterState{
		v1.ClusterCurrent, v1.ClusterBehind, v1.ClusterBehind, v1.ClusterBehind, v1.ClusterMoving, v1.ClusterSick, v1.ClusterAway,
	}
	standing := rollout.Standing{Group: chance.Intn(4), State: states[chance.Intn(len(states))], Sick: chance.Intn(9) == 0}
	for item := range 5 {
		standing.Changes = append(standing.Changes, rollout.Change{
			Item: fmt.Sprintf("item-%d", item), Kind: v1.ChangeUpdate, From: fmt.Sprintf("1.%d.0", chance.Intn(4)), To: "2.0.0",
		})
	}
	return standing
}

// decided is an event between two writes of the status.
func decided(tally *rollout.Tally, made rollout.Strategy, name string, standing rollout.Standing) {
	tally.Put(name, standing)
	rollout.Decide(made, tally, rollout.ByRule)
}

// event is what one event costs at most: the cluster's standing, a decision, and the status.
func event(tally *rollout.Tally, made rollout.Strategy, name string, standing rollout.Standing) {
	tally.Put(name, standing)
	rollout.Decide(made, tally, rollout.ByRule)
	tally.Troubled(made)
	tally.Pending()
}

// Red when an event at 10,000 clusters costs more than 1.5 times that at 1,000, counted in comparisons and in allocations.
func TestAnEventCostsTheSameInLargeFleets(t *testing.T) {
	work := func(clusters int, event func(*rollout.Tally, rollout.Strategy, string, rollout.Standing)) (comparisons, allocations float64) {
		tally, chance := large(clusters), rand.New(rand.NewSource(1))
		made := strategy(t, &v1.Rollout{Pace: v1.Pace{MaxConcurrency: of(1), MaxFailures: of(1000000)}})
		compared := tally.CountComparisons()
		const events = 3000
		allocations = testing.AllocsPerRun(events, func() {
			event(tally, made, fmt.Sprintf("cluster-%06d", chance.Intn(clusters)), anyStanding(chance))
		})
		return float64(*compared) / events, allocations
	}
	for what, event := range map[string]func(*rollout.Tally, rollout.Strategy, string, rollout.Standing){
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

// Red when a cluster in a Tally takes more than 1 KiB, or more than its texts besides.
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
	usual := measured(func(tally *rollout.Tally, i int) { tally.Put(fmt.Sprintf("cluster-%06d", i), anyStanding(chance)) })
	worst := measured(func(tally *rollout.Tally, i int) {
		standing := anyStanding(chance)
		standing.State = v1.ClusterFailed
		standing.Trouble = rollout.Trouble{Item: "x", Reason: "y", Message: strings.Repeat("z", 100000)}
		tally.Put(fmt.Sprintf("cluster-%06d", i), standing)
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
			standings := make([]rollout.Standing, 64)
			for i := range standings {
				standings[i] = anyStanding(chance)
			}
			made := strategy(b, &v1.Rollout{Pace: v1.Pace{MaxConcurrency: of(1), MaxFailures: of(1000000)}})
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				event(tally, made, fmt.Sprintf("cluster-%06d", (i*7919)%clusters), standings[i%64])
			}
		})
	}
}
