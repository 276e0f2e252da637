package fairqueue

import (
	"fmt"
	"strings"
	"testing"
)

// TestATenantsShareDoesNotGrowWithItsClusters turns red when a tenant gets a share for each of its clusters, or a turn for each.
func TestATenantsShareDoesNotGrowWithItsClusters(t *testing.T) {
	b := newBench(t, Limits{Workers: 10})
	for i := range 100 {
		b.add(fmt.Sprintf("many:%d", i), 3)
	}
	b.add("one", 2)
	if got := b.taken(); got != "many:0 one many:1 one many:2 many:3" {
		t.Errorf("took %q: tenants take turns, their clusters do, and one tenant has 4 workers of 10", got)
	}
}

// TestAClusterLeavesItsNeighboursAWorker turns red when one cluster of a tenant may hold all that its tenant gets.
func TestAClusterLeavesItsNeighboursAWorker(t *testing.T) {
	b := newBench(t, Limits{Workers: 10})
	b.add("tenant:bad", 20)
	if got := b.taken(); got != strings.Repeat(" tenant:bad", 3)[1:] {
		t.Fatalf("one of a tenant's clusters got %q", got)
	}
	b.add("tenant:good", 1)
	if got := b.taken(); got != "tenant:good" {
		t.Errorf("beside a busy cluster of its tenant, took %q", got)
	}
}

// TestASlowClusterDoesNotSlowItsNeighbours turns red when clusters of a tenant become slow together.
func TestASlowClusterDoesNotSlowItsNeighbours(t *testing.T) {
	b := newBench(t, Limits{Workers: 10})
	b.add("tenant:bad", 20)
	b.taken()
	b.advance(slowAfter)
	for item := range b.queue.runs {
		b.queue.Done(item)
	}
	b.add("tenant:good", 20)
	if got := b.taken(); strings.Count(got, "bad") != 1 || strings.Count(got, "good") != 3 {
		t.Errorf("took %q: the slow cluster has one worker, and its neighbour what it always has", got)
	}
}

// TestSlowClustersOfATenantShareOnePlace turns red when a tenant takes the whole lane with slow clusters of its own.
func TestSlowClustersOfATenantShareOnePlace(t *testing.T) {
	b := newBench(t, Limits{Workers: 10})
	clusters := []string{"tenant:a", "tenant:b", "other"}
	for _, cluster := range clusters {
		b.add(cluster, 1)
	}
	b.taken()
	b.advance(slowAfter)
	b.finish()
	for _, cluster := range clusters {
		b.add(cluster, 2)
	}
	if got := b.taken(); strings.Count(got, "tenant:") != 1 || strings.Count(got, "other") != 1 {
		t.Errorf("took %q: the lane of slow clusters has two places, and a tenant has one of them", got)
	}
}
