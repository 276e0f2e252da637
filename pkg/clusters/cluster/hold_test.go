package cluster

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	capiv1 "github.com/trellis-addons/trellis/apis/clusterapi/v1"
)

// onPool is a pool of workers with annotations, in pairs.
func onPool(name string, annotations ...string) capiv1.WorkerPool {
	pool := capiv1.WorkerPool{Name: name}
	for i := 0; i < len(annotations); i += 2 {
		if pool.Metadata.Annotations == nil {
			pool.Metadata.Annotations = map[string]string{}
		}
		pool.Metadata.Annotations[annotations[i]] = annotations[i+1]
	}
	return pool
}

// TestWhatIsHeldOfPools fails when a hold of another client is removed, replaced, or counts as ours; when a pool that
// was moved or renamed during the hold is not held, or is held where it should not be; and when a Cluster without
// pools counts as one with workers.
func TestWhatIsHeldOfPools(t *testing.T) {
	const hold = capiv1.AnnotationHoldSequence
	const first, at1 = "/spec/topology/workers/machineDeployments/0", "/spec/topology/workers/machineDeployments/1"
	const held = "/metadata/annotations/topology.cluster.x-k8s.io~1hold-upgrade-sequence"
	ours := map[string]any{hold: holder}
	for _, test := range []struct {
		why                     string
		deployments, pools      []capiv1.WorkerPool
		hasWorkers, held, stray bool
		holding, lettingGo      []operation
	}{
		{why: "without pools there is nothing to hold"},
		{
			why: "the first of each kind is held", deployments: []capiv1.WorkerPool{onPool("a"), onPool("b")}, pools: []capiv1.WorkerPool{onPool("p", "note", "x")},
			hasWorkers: true,
			holding: []operation{
				{"add", first + "/metadata", map[string]any{"annotations": ours}},
				{"add", "/spec/topology/workers/machinePools/0" + held, holder},
			},
		},
		{
			why: "held it is", deployments: []capiv1.WorkerPool{onPool("a", hold, holder), onPool("b")}, hasWorkers: true, held: true,
			lettingGo: []operation{{"remove", first + held, nil}},
		},
		{why: "somebody else's hold is theirs", deployments: []capiv1.WorkerPool{onPool("a", hold, "by hand"), onPool("b")}},
		{
			why: "one kind is somebody else's, the other is held", deployments: []capiv1.WorkerPool{onPool("a", hold, "by hand")},
			pools: []capiv1.WorkerPool{onPool("p", hold, holder)}, hasWorkers: true, held: true,
			lettingGo: []operation{{"remove", "/spec/topology/workers/machinePools/0" + held, nil}},
		},
		{
			why: "one kind alone is not all", deployments: []capiv1.WorkerPool{onPool("a", hold, holder)}, pools: []capiv1.WorkerPool{onPool("p")}, hasWorkers: true,
			holding:   []operation{{"add", "/spec/topology/workers/machinePools/0/metadata", map[string]any{"annotations": ours}}},
			lettingGo: []operation{{"remove", first + held, nil}},
		},
		{
			why: "one that came before those that are held", deployments: []capiv1.WorkerPool{onPool("new"), onPool("a", hold, holder)}, hasWorkers: true, stray: true,
			holding:   []operation{{"add", first + "/metadata", map[string]any{"annotations": ours}}, {"remove", at1 + held, nil}},
			lettingGo: []operation{{"remove", at1 + held, nil}},
		},
		{
			why: "one that was renamed, and lost its annotations by that", deployments: []capiv1.WorkerPool{onPool("renamed", "note", "x")}, hasWorkers: true,
			holding: []operation{{"add", first + held, holder}},
		},
		{why: "somebody else's hold of a further one", deployments: []capiv1.WorkerPool{onPool("a", hold, holder), onPool("b", hold, "by hand")},
			hasWorkers: true, held: true, lettingGo: []operation{{"remove", first + held, nil}}},
	} {
		found := &capiv1.Cluster{}
		found.Spec.Topology.Version = "v1.36.3"
		found.Spec.Topology.Workers.MachineDeployments, found.Spec.Topology.Workers.MachinePools = test.deployments, test.pools
		seen := upgradeOf(found, known{version: "1.36.3", versions: []string{"v1.36.3"}})
		if seen.HasWorkers != test.hasWorkers || seen.Held != test.held || seen.Stray != test.stray {
			t.Errorf("%s: workers %t, held %t, stray %t", test.why, seen.HasWorkers, seen.Held, seen.Stray)
		}
		for wanted, want := range map[bool][]operation{true: test.holding, false: test.lettingGo} {
			if diff := cmp.Diff(encoded(t, want), encoded(t, holdOn(found, Holds{Workers: wanted}))); diff != "" {
				t.Errorf("%s, to be held %t (-want +got):\n%s", test.why, wanted, diff)
			}
		}
	}
}

// encoded are operations as they are sent, one per line.
func encoded(t *testing.T, operations []operation) (lines []string) {
	t.Helper()
	for _, one := range operations {
		text, err := json.Marshal(one)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(text))
	}
	return lines
}
