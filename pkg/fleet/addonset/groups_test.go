package addonset_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/addonset"
)

// groupsOf a set, each with its labels as "key=value,key=value"; the first are those of the set itself.
func groupsOf(t *testing.T, selectors ...string) *v1.AddonSet {
	t.Helper()
	parsed := func(text string) *metav1.LabelSelector {
		selector, err := metav1.ParseToLabelSelector(text)
		if err != nil {
			t.Fatal(err)
		}
		return selector
	}
	set := &v1.AddonSet{Spec: v1.AddonSetSpec{ClusterSelector: parsed(selectors[0]), Rollout: &v1.Rollout{}}}
	set.Generation, set.Status.ObservedGeneration = 3, 3
	set.Status.Counts = &v1.ClusterCounts{Selected: 4, Current: 4}
	set.Status.Seeds = []v1.SetSeedStatus{{Name: "seed-1", Synced: true}}
	for i, selector := range selectors[1:] {
		name := string(rune('a' + i))
		set.Spec.Rollout.Groups = append(set.Spec.Rollout.Groups, v1.RolloutGroup{Name: v1.AddonName(name), ClusterSelector: parsed(selector)})
		set.Status.Groups = append(set.Status.Groups, v1.GroupStatus{Name: name, Counts: v1.ClusterCounts{Selected: int32(i)}})
	}
	return set
}

// Red when a group that can't have a cluster, or had none, is not told of before it opens others to everybody; and when one is told of
// whose clusters nobody knows.
func TestEmptyGroups(t *testing.T) {
	was := groupsOf(t, "tier=prod", "ring=0", "ring=1") // a has none, b has one
	edited := func(change func(*v1.AddonSet)) *v1.AddonSet {
		made := was.DeepCopy()
		change(made)
		return made
	}
	bumped := edited(func(set *v1.AddonSet) { set.Spec.Priority = 7 })
	for _, test := range []struct {
		why           string
		before, after *v1.AddonSet
		want          []string
	}{
		{"a new set, whose clusters nobody knows", nil, groupsOf(t, "", "ring=0", "ring=1"), nil},
		{"the same selector twice", nil, groupsOf(t, "", "ring=0", "ring=0"), []string{`group "b" selects no cluster: the earlier group "a"`}},
		{"after one that selects all", nil, groupsOf(t, "", "", "ring=0", "ring=1"), []string{`group "b" selects`, `group "c" selects`}},
		{"an edit of a set with one", was, bumped, []string{`group "a" selects no cluster: no cluster that the set selects has the labels of this group`}},
		{"an edit that mends it", was, edited(func(set *v1.AddonSet) { set.Spec.Rollout.Groups[0].ClusterSelector.MatchLabels["ring"] = "7" }), nil},
		{"an edit of what the set selects", was, edited(func(set *v1.AddonSet) { set.Spec.ClusterSelector.MatchLabels["tier"] = "all" }), nil},
		{"a group that is new", was, edited(func(set *v1.AddonSet) { set.Spec.Rollout.Groups[0].Name = "other" }), nil},
		{"a status of an earlier generation", edited(func(set *v1.AddonSet) { set.Generation = 4 }), bumped, nil},
		{"a seed that has not reported", edited(func(set *v1.AddonSet) { set.Status.Seeds[0].Synced = false }), bumped, nil},
		{"a set that selects no cluster at all", edited(func(set *v1.AddonSet) { set.Status.Counts.Selected = 0 }), bumped, nil},
		{"a set without rollout", was, edited(func(set *v1.AddonSet) { set.Spec.Rollout = nil }), nil},
	} {
		got := addonset.EmptyGroups(test.before, test.after)
		isWrong := len(got) != len(test.want)
		for i := range min(len(got), len(test.want)) {
			isWrong = isWrong || !strings.HasPrefix(got[i], test.want[i])
		}
		if isWrong {
			t.Errorf("%s: %q", test.why, got)
		}
	}
}
