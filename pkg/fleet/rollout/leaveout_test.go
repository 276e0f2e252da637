package rollout_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
)

// TestWhoIsLeftOut fails when annotation leave-out is not read as written, when one above its bounds, or with an
// invalid name, leaves out a cluster, and when a misspelt name is not reported.
func TestWhoIsLeftOut(t *testing.T) {
	for _, test := range []struct {
		why, value string
		has        string
		isError    bool
	}{
		{"nobody", "", "", false},
		{"by name", "amber", "amber", false},
		{"by the namespace of a Cluster of KKP", "cluster-birch, amber", "amber birch", false},
		{"by namespace and name", "team/one", "team/one", false},
		{"by a namespace with several", "team", "team/one team/two", false},
		{"twice", "amber,amber", "amber", false},
		{"an item leaves out no cluster", "amber:web, birch:web=1.0.0-A+b", "", false},
		{"no item", "amber:", "", true},
		{"no version", "amber:web=", "", true},
		{"a range", "amber:web=1.x || 2", "", true},
		{"a comma too many", "amber,", "", true},
		{"what no cluster is called", "amber,Birch!", "", true},
		{"too many", strings.Repeat("a,", 32) + "b", "", true},
		{"too long", "amber," + strings.Repeat("b", 253) + ",a" + strings.Repeat(" ", 1024), "", true},
	} {
		got, err := rollout.ReadLeaveOut(test.value)
		problem, isProblem := errors.AsType[*rollout.AnnotationError](err)
		if isProblem != test.isError || isProblem && problem.Annotation != v1.AnnotationLeaveOut {
			t.Errorf("%s: %v", test.why, err)
		}
		var has []string
		for _, name := range []string{"amber", "birch", "team/one", "team/two", "other/amber2"} {
			if got.Has(name) {
				has = append(has, name)
			}
		}
		if diff := cmp.Diff(test.has, strings.Join(has, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.why, diff)
		}
	}
	names, err := rollout.ReadLeaveOut("amber,brich,team/one,team/on")
	if err != nil {
		t.Fatal(err)
	}
	listed := []v1.SetClusterStatus{{Name: "amber"}, {Name: "birch"}, {Name: "team/one"}}
	if diff := cmp.Diff([]string{"brich", "team/on"}, names.Unknown(listed)); diff != "" {
		t.Errorf("misspelt (-want +got):\n%s", diff)
	}
}

// TestItemsThatAreLeftOut fails when annotation leave-out takes an item out of another cluster, or when an item that the set does not have
// is not reported.
func TestItemsThatAreLeftOut(t *testing.T) {
	read, err := rollout.ReadLeaveOut("amber, birch:web, team/one:web=1.2.0, team:page, brich:web, birch:wbe")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		cluster, item, version string
		isNamed                bool
	}{
		{"amber", "web", "", false},
		{"birch", "web", "", true},
		{"birch", "page", "", false},
		{"team/one", "web", "1.2.0", true},
		{"team/two", "web", "", false},
		{"team/two", "page", "", true},
	} {
		if version, isNamed := read.Item(test.cluster, test.item); version != test.version || isNamed != test.isNamed {
			t.Errorf("item %s of %s: %q, %v", test.item, test.cluster, version, isNamed)
		}
	}
	listed := []v1.SetClusterStatus{{Name: "amber"}, {Name: "birch"}, {Name: "team/one"}}
	if diff := cmp.Diff([]string{"brich:web"}, read.Unknown(listed)); diff != "" {
		t.Errorf("misspelt clusters (-want +got):\n%s", diff)
	}
	spec := &v1.AddonSetSpec{Addons: []v1.AddonSetItem{{Name: "web"}, {Name: "page"}}}
	if diff := cmp.Diff([]string{"birch:wbe"}, read.UnknownItems(spec)); diff != "" {
		t.Errorf("misspelt items (-want +got):\n%s", diff)
	}
	if got := read.UnknownItems(&v1.AddonSetSpec{Type: v1.AddonSetCore}); len(got) != 5 {
		t.Errorf("of a set of type Core: %q", got)
	}
}
