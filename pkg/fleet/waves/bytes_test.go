package waves

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
)

// TestTheStatusOfASeedIsBoundedWithEveryClusterFailing: The status of a seed has at most 64 KiB as JSON, for any
// texts of clusters: 2,000 of them, all failed, with 64 items and texts of the maximum length, in 17 groups. The test
// fails when rows and messages are shown whole.
func TestTheStatusOfASeedIsBoundedWithEveryClusterFailing(t *testing.T) {
	for what, letter := range map[string]string{"plain": "m", "which JSON escapes": "<"} {
		t.Run(what, func(t *testing.T) {
			long := func(most int) string { return strings.Repeat(letter, most) }
			strategy, err := rollout.NewStrategy(groups(16))
			if err != nil {
				t.Fatal(err)
			}
			tally := rollout.NewTally("everywhere")
			for i := range 2_000 {
				status := rollout.ClusterStatus{
					State: v1.ClusterFailed, Blocked: true, Group: i % 17,
					Trouble: rollout.Trouble{Item: strings.Repeat("i", 63), Reason: strings.Repeat("R", 200), Message: long(10_000)},
				}
				for item := range 64 {
					status.Changes = append(status.Changes, rollout.Change{
						Item: fmt.Sprintf("%02d%s", item, strings.Repeat("i", 61)), Kind: v1.ChangeUpdate, From: strings.Repeat("1", 128), To: strings.Repeat("2", 128),
					})
				}
				tally.Put(fmt.Sprintf("%05d%s", i, strings.Repeat("c", 248)), status)
			}
			status := StatusOf(Shown{
				Generation: 1, Catalogues: strings.Repeat("d", 71), Revision: strings.Repeat("r", 16), StartedAt: time.Unix(1000, 0),
				Reason: v1.ReasonHalted, Message: long(10_000), DeletionBlocked: long(500),
			}, tally, strategy, rollout.Decide(strategy, tally, rollout.ByRule))
			encoded, err := json.Marshal(status)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d bytes, %d of them clusters, %d changes", len(encoded), len(status.Clusters), len(status.Pending))
			if len(encoded) > 64<<10 || len(status.Clusters) < 20 || len(status.Pending) < 20 || status.Counts.Failed != 2_000 {
				t.Errorf("the status has %d bytes, %d clusters, %d changes and counts %+v",
					len(encoded), len(status.Clusters), len(status.Pending), status.Counts)
			}
		})
	}
}

func groups(number int) *v1.Rollout {
	made := &v1.Rollout{}
	for i := range number {
		made.Groups = append(made.Groups, v1.RolloutGroup{
			Name: v1.AddonName(fmt.Sprintf("%02d%s", i, strings.Repeat("g", 61))), ClusterSelector: &metav1.LabelSelector{},
		})
	}
	return made
}
