package clusters

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/test/bench/bar"
	"github.com/trellis-addons/trellis/test/clusterapi"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/gate"
	"github.com/trellis-addons/trellis/test/long"
	"github.com/trellis-addons/trellis/test/world"
)

const (
	// quietClusters are so many; BenchmarkQuietClusters rests as long as the bar says, the test for less long.
	quietClusters = 50
	shortRest     = 10 * time.Second
	longRest      = time.Minute
)

// TestStatusOfClustersWakesNobody: Red when Cluster API's writes of status, of Clusters and their control planes, bring about a pass of any
// controller, or when something is written while nothing changes.
func TestStatusOfClustersWakesNobody(t *testing.T) {
	long.Skip(t, "fleet-sizes", "it takes fifty Clusters")
	churn(t, shortRest)
}

// BenchmarkQuietClusters is that for a minute each.
func BenchmarkQuietClusters(b *testing.B) {
	for b.Loop() {
		runs, calls := churn(b, longRest)
		bar.Exactly(b, "passes", float64(runs), 0)
		bar.Exactly(b, "writes", float64(calls.Writes), 0)
	}
}

// churn has status written each second for a while, and then nothing.
func churn(t testing.TB, rest time.Duration) (runs int, idle gate.Counts) {
	t.Helper()
	p := newPlatform(t, 1)
	expect.Create(t, p.client, world.Namespace(team))
	var members []member
	for i := range quietClusters {
		members = append(members, p.member(team, fmt.Sprintf("c%02d", i), p.servers[0]))
	}
	p.install()
	p.add(members...)
	m := p.start()
	begin := time.Now()
	expect.Eventually(t, 3*time.Minute, func() error { return p.areReady(2*len(members), team) })
	expect.Eventually(t, expect.Patience, func() error { return p.areHeld(members...) })
	t.Logf("%d Clusters have their add-ons after %s", len(members), time.Since(begin).Round(time.Second))
	p.settle(m)

	before, written := m.runs(), 0
	for _, controller := range []string{"addon", "addoninstallation", "addonset", "clusterupgrade", "coreaddon"} {
		if before[controller] == 0 {
			t.Errorf("%s made no pass: there are %v", controller, before)
		}
	}
	for turn, last := int64(2), time.Now().Add(rest); time.Now().Before(last); turn++ {
		next := time.Now().Add(time.Second)
		p.writeStatus(turn, members...)
		written += 2 * len(members)
		expect.Eventually(t, expect.Patience, func() error { return until(next) })
	}
	for controller, count := range m.runs() {
		if more := count - before[controller]; more > 0 {
			t.Errorf("%d passes of %s for %d writes of status", more, controller, written)
			runs += more
		}
	}
	t.Logf("%d passes for %d writes of status of %d Clusters and their control planes in %s", runs, written, len(members), rest)

	start, calls := p.calls(), len(p.servers[0].callsSince(0))
	end := time.Now().Add(rest)
	expect.Eventually(t, rest+expect.Patience, func() error { return until(end) })
	idle = p.calls()
	idle.Reads, idle.Writes = idle.Reads-start.Reads, idle.Writes-start.Writes
	for _, call := range p.servers[0].callsSince(calls) {
		if call.Writes() {
			idle.Writes++
		}
		idle.Reads++
	}
	t.Logf("%d reads and %d writes in %s without a change", idle.Reads, idle.Writes, rest)
	if idle.Writes > 0 {
		t.Errorf("%d writes where nothing changes", idle.Writes)
	}
	return runs, idle
}

var errNotYet = errors.New("not yet")

func until(when time.Time) error {
	if time.Now().Before(when) {
		return errNotYet
	}
	return nil
}

// calls of the manager to the management cluster.
func (p *platform) calls() gate.Counts { return p.gate.Counts(seed) }

// settle waits until the manager makes no pass for some seconds, and nothing waits for one.
func (p *platform) settle(m *manager) {
	p.t.Helper()
	last, since := m.runs(), time.Now()
	expect.Eventually(p.t, 2*time.Minute, func() error {
		now := m.runs()
		if busy := m.busy(); busy > 0 || !maps.Equal(last, now) {
			last, since = now, time.Now()
		}
		return until(since.Add(5 * time.Second))
	})
}

// writeStatus writes what Cluster API and a provider do, without anything that add-ons depend on.
func (p *platform) writeStatus(turn int64, members ...member) {
	p.t.Helper()
	var group errgroup.Group
	group.SetLimit(8)
	for _, one := range members {
		group.Go(func() error {
			cluster, plane := one.object(clusterapi.ClusterKind), one.object(clusterapi.ControlPlaneKind)
			err := errors.Join(p.client.Get(p.t.Context(), one.NamespacedName, cluster), p.client.Get(p.t.Context(), one.NamespacedName, plane))
			if err != nil {
				return err
			}
			cluster.Object["status"] = statusAt(turn)
			before := plane.DeepCopy()
			plane.Object["status"] = map[string]any{"version": kubernetes, "versions": versions(), "replicas": int64(3), "readyReplicas": turn}
			return errors.Join(
				p.client.Status().Update(p.t.Context(), cluster),
				p.client.Status().Patch(p.t.Context(), plane, client.MergeFrom(before)),
			)
		})
	}
	expect.NoError(p.t, group.Wait())
}
