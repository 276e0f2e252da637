package soak

import (
	"flag"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/trellis-addons/trellis/test/long"
	"github.com/trellis-addons/trellis/test/sandbox"
)

var (
	duration = flag.Duration("soak", 40*time.Second, "how long the platform is under attack")
	seed     = flag.Uint64("seed", 11, "the seed of the order of events; 0 takes a new one")
)

// TestSoak: everything at once, for as long as -soak says. In the first half managers are killed too; the second begins and ends
// with the whole intent in place, and what the managers hold at its two ends is compared.
func TestSoak(t *testing.T) {
	long.Skip(t, "soak", "attacks need a time in which they pile up")
	number := *seed
	if number == 0 {
		number = rand.Uint64()
	}
	t.Logf("seed %d", number)
	random := rand.New(rand.NewPCG(number, number))
	p := start(t)
	before := map[string]map[string]string{}
	for _, cluster := range sandbox.UserClusters() {
		before[cluster.Name] = p.objects(t, cluster)
	}

	p.happen(t, random, *duration/2, append(slices.Clip(events), kills))
	p.settle(t, before)
	held, processes := p.resting(t), map[string]int{}
	for _, manager := range p.managers() {
		processes[manager] = p.pid(manager)
	}

	p.happen(t, random, *duration/2, events)
	p.settle(t, before)
	now := p.resting(t)
	for _, manager := range p.managers() {
		if pid := p.pid(manager); pid != processes[manager] {
			t.Errorf("the manager of %s ended, and nobody killed it", manager)
			continue
		}
		expectFlat(t, manager, held[manager], now[manager])
	}
}

// settle brings the intent back and waits until every cluster has it.
func (p *platform) settle(t *testing.T, before map[string]map[string]string) {
	t.Helper()
	begin := time.Now()
	p.restore(t)
	for _, cluster := range sandbox.UserClusters() {
		p.awaitIntent(t, cluster)
		p.expectSame(t, cluster, before[cluster.Name])
	}
	t.Logf("every cluster has its intent again after %s", time.Since(begin).Round(time.Second))
}
