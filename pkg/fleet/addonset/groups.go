package addonset

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// EmptyGroups warns about groups that select no cluster: those that can't, because of the selectors before theirs,
// and those that did not, by the status of the set before an edit; before is nil for a new set.
func EmptyGroups(before, after *v1.AddonSet) []string {
	if after.Spec.Rollout == nil {
		return nil
	}
	var warnings []string
	for i, group := range after.Spec.Rollout.Groups {
		why := ""
		for _, earlier := range after.Spec.Rollout.Groups[:i] {
			isAll := len(earlier.ClusterSelector.MatchLabels)+len(earlier.ClusterSelector.MatchExpressions) == 0
			if why == "" && (isAll || equality.Semantic.DeepEqual(earlier.ClusterSelector, group.ClusterSelector)) {
				why = fmt.Sprintf("the earlier group %q selects all clusters that this group could select", earlier.Name)
			}
		}
		if why == "" && wasEmpty(before, after, i) {
			why = "no cluster that the set selects has the labels of this group"
		}
		if why != "" {
			warnings = append(warnings, fmt.Sprintf(
				"group %q selects no cluster: %s; the groups after it will wait for an approval", group.Name, why))
		}
	}
	return warnings
}

// wasEmpty says whether a group had no cluster by the status, to which all seeds contributed, and still selects the
// same clusters.
func wasEmpty(before, after *v1.AddonSet, group int) bool {
	if before == nil || before.Spec.Rollout == nil || before.Status.ObservedGeneration != before.Generation ||
		before.Status.Counts == nil || before.Status.Counts.Selected == 0 ||
		slices.ContainsFunc(before.Status.Seeds, func(seed v1.SetSeedStatus) bool { return !seed.Synced }) ||
		!equality.Semantic.DeepEqual(before.Spec.ClusterSelector, after.Spec.ClusterSelector) ||
		!equality.Semantic.DeepEqual(before.Spec.Constraints, after.Spec.Constraints) {
		return false
	}
	name, groups := after.Spec.Rollout.Groups[group].Name, before.Spec.Rollout.Groups
	for i, status := range before.Status.Groups {
		if i < len(groups) && groups[i].Name == name && status.Name == string(name) {
			return status.Counts.Selected == 0 &&
				equality.Semantic.DeepEqual(groups[i].ClusterSelector, after.Spec.Rollout.Groups[group].ClusterSelector)
		}
	}
	return false
}
