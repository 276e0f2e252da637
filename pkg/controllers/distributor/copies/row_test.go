package copies

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
)

// Red when a seed's rows, counts or texts are taken over as they are.
func TestWhatASeedSaysIsCut(t *testing.T) {
	giant := strings.Repeat("ü\n", 1<<20)
	said := v1.AddonSetStatus{
		Catalogues: giant, Revision: giant, PendingCount: math.MaxInt32,
		Counts:     &v1.ClusterCounts{Selected: math.MaxInt32, Failed: math.MinInt32},
		Conditions: []metav1.Condition{{Type: v1.ConditionReady, Reason: giant, Message: giant}},
		Removal:    &v1.PendingRemoval{Word: giant, Count: math.MaxInt32},
	}
	for i := range 10_000 {
		said.Removal.Clusters = append(said.Removal.Clusters, giant)
		said.Groups = append(said.Groups, v1.GroupStatus{Name: giant, State: v1.GroupOpen})
		said.Pending = append(said.Pending, v1.PendingChange{Item: giant, Change: v1.ChangeInstall, From: giant, Example: giant, Clusters: math.MaxInt32})
		said.Clusters = append(said.Clusters, v1.SetClusterStatus{
			Name: fmt.Sprint(i), Seed: "north", State: v1.ClusterFailed, Message: giant, Item: giant, Reason: giant, Cause: giant,
		})
	}
	found := cut("south", &said)
	encoded, err := json.Marshal(found)
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Clusters) != 50 || len(found.Pending) != 50 || len(found.Groups) != 17 || len(encoded) > 128<<10 {
		t.Errorf("%d clusters, %d changes, %d groups, %d bytes", len(found.Clusters), len(found.Pending), len(found.Groups), len(encoded))
	}
	if named := found.Removal.Clusters; len(named) != rollout.RemovalClusters || len(named[0]) > 253 || strings.Contains(named[0], "\n") {
		t.Errorf("removals wait in %d clusters, the first has %d bytes", len(named), len(named[0]))
	}
	const most = rollout.ClustersAtMost
	if found.Counts.Selected != most || found.Counts.Failed != 0 || found.PendingCount != most || found.Pending[0].Clusters != most {
		t.Errorf("counts %+v, pending %d", found.Counts, found.PendingCount)
	}
	if found.Clusters[0].Seed != "south" || found.Revision != "" || strings.Contains(found.Clusters[0].Message, "\n") {
		t.Errorf("cluster %+v, revision %q", found.Clusters[0], found.Revision)
	}
	odd := cut("south", &v1.AddonSetStatus{
		Groups: []v1.GroupStatus{{Name: "a", State: "Odd"}}, Clusters: []v1.SetClusterStatus{{Name: "a", State: "Odd"}},
		Pending: []v1.PendingChange{{Item: "a", Change: "Odd", Clusters: 1}, {Item: "a", Change: v1.ChangeInstall}}, Revision: "r/1",
	})
	if len(odd.Groups)+len(odd.Clusters)+len(odd.Pending) > 0 || odd.Revision != "" {
		t.Errorf("words that no seed has are kept: %+v", odd)
	}
}
