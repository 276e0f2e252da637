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
