package rollout

import (
	"slices"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// sharedFrom is the number of clusters that must report the same cause for it to count as the revision's. A limit of
// half of the moved clusters would be lower only if two clusters moved. In that case, one good cluster is enough.
const sharedFrom = 2

// causes are counts of the clusters that report a cause of their own, by that cause.
type causes map[string]reports

// reports counts the clusters with one cause, and the sick ones among them: in total, and in each group.
type reports struct {
	all  int32
	sick [maxGroups + 1]int32
}

// note adds a cluster, or removes it.
func (c causes) note(cause string, state kubermaticv1.ClusterState, group int, by int32) {
	if cause == "" || state != kubermaticv1.ClusterSick && state != kubermaticv1.ClusterFailed {
		return
	}
	counted := c[cause]
	counted.all += by
	if state == kubermaticv1.ClusterSick {
		counted.sick[0] += by
		if group != NoGroup {
			counted.sick[group+1] += by
		}
	}
	c[cause] = counted
}

func (c causes) isShared(cause string) bool { return c[cause].all >= sharedFrom }

// noteRow adds the clusters that a seed lists.
func (c causes) noteRow(row *Row) {
	for _, one := range row.Clusters {
		group := slices.IndexFunc(row.Groups, func(group kubermaticv1.GroupStatus) bool { return group.Name == one.Group })
		c.note(one.Cause, one.State, group, 1)
	}
}

// blamed are the counts of a group, or of all clusters (NoGroup), where sick clusters whose cause is shared according
// to among count as failed.
func (c causes) blamed(counts kubermaticv1.ClusterCounts, group int, among causes) kubermaticv1.ClusterCounts {
	for cause, counted := range c {
		if among.isShared(cause) {
			sick := min(counted.sick[group+1], counts.Sick)
			counts.Sick, counts.Failed = counts.Sick-sick, counts.Failed+sick
		}
	}
	return counts
}
