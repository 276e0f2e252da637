package rollout_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
)

func of(value any) *intstr.IntOrString {
	made := intstr.IntOrString{}
	switch value := value.(type) {
	case int:
		made = intstr.FromInt32(int32(value))
	case string:
		made = intstr.FromString(value)
	}
	return &made
}

func within(minutes int) *metav1.Duration {
	return &metav1.Duration{Duration: time.Duration(minutes) * time.Minute}
}

func ring(name, value string) v1.RolloutGroup {
	return v1.RolloutGroup{
		Name: v1.AddonName(name), ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"ring": value}},
	}
}

func strategy(t testing.TB, spec *v1.Rollout) rollout.Strategy {
	t.Helper()
	made, err := rollout.NewStrategy(spec)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestLimitsAreNumbersOrPercentages fails when a percentage is rounded the other way, or a limit is accepted that the
// kind refuses.
func TestLimitsAreNumbersOrPercentages(t *testing.T) {
	for _, test := range []struct {
		why                       string
		concurrency, failures     any
		clusters, places, failing int
		refused                   string
	}{
		{"defaults", nil, nil, 25, 3, 0, ""},
		{"at least one place", "1%", nil, 3, 1, 0, ""},
		{"places are rounded up", "34%", "34%", 3, 2, 1, ""},
		{"failures are rounded down", nil, "99%", 10, 1, 9, ""},
		{"all", "100%", "100%", 7, 7, 7, ""},
		{"no clusters", "50%", "50%", 0, 1, 0, ""},
		{"numbers", 4, 2, 3, 4, 2, ""},
		{"the most", 1000000, 1000000, 3, 1000000, 1000000, ""},
		{"no place", 0, nil, 0, 0, 0, "maxConcurrency"},
		{"below zero", nil, -1, 0, 0, 0, "maxFailures"},
		{"too many", 1000001, nil, 0, 0, 0, "maxConcurrency"},
		{"no percentage", "ten", nil, 0, 0, 0, "maxConcurrency"},
		{"a number as text", "5", nil, 0, 0, 0, "maxConcurrency"},
		{"none of them", "0%", nil, 0, 0, 0, "maxConcurrency"},
		{"more than all", nil, "101%", 0, 0, 0, "maxFailures"},
		{"much more", nil, "18446744073709551617%", 0, 0, 0, "maxFailures"},
		{"a sign", "+5%", nil, 0, 0, 0, "maxConcurrency"},
		{"zeros before it", "05%", nil, 0, 0, 0, "maxConcurrency"},
		{"two of them", "5%%", nil, 0, 0, 0, "maxConcurrency"},
	} {
		t.Run(test.why, func(t *testing.T) {
			pace := v1.Pace{}
			if test.concurrency != nil {
				pace.MaxConcurrency = of(test.concurrency)
			}
			if test.failures != nil {
				pace.MaxFailures = of(test.failures)
			}
			made, err := rollout.NewStrategy(&v1.Rollout{Pace: pace})
			var invalid *rollout.InvalidError
			if test.refused != "" {
				if !errors.As(err, &invalid) || invalid.Field != test.refused {
					t.Fatalf("got %v, expected a refusal of %s", err, test.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			rest := made.Groups[0]
			if places := rest.MaxConcurrency.Places(test.clusters); places != test.places {
				t.Errorf("%d places, expected %d", places, test.places)
			}
			if failing := rest.MaxFailures.Failures(test.clusters); failing != test.failing {
				t.Errorf("%d may fail, expected %d", failing, test.failing)
			}
		})
	}
}

// TestGroupsHaveTheRolloutsPaceAndThatTheDefaults fails when a group doesn't fall back to the rollout's pace, and
// that to the defaults.
func TestGroupsHaveTheRolloutsPaceAndThatTheDefaults(t *testing.T) {
	canary := ring("canary", "0")
	canary.Soak, canary.Start = within(60), v1.StartApproved
	made := strategy(t, &v1.Rollout{Pace: v1.Pace{MaxFailures: of(3)}, Groups: []v1.RolloutGroup{canary}})
	first, rest := made.Groups[0], made.Groups[1]
	if first.Soak != time.Hour || rest.Soak != 5*time.Minute || first.ProgressDeadline != 30*time.Minute {
		t.Errorf("paces are %+v and %+v", first, rest)
	}
	if first.MaxFailures.Failures(100) != 3 || first.MaxConcurrency.Places(100) != 10 {
		t.Errorf("limits are %+v", first)
	}
	if first.Start != v1.StartApproved || rest.Start != v1.StartAutomatic || rest.Name != v1.GroupRest {
		t.Errorf("groups are %+v", made.Groups)
	}
	if alone := made.Ungrouped(); len(alone.Groups) != 1 || alone.GroupOf(labels.Set{"ring": "0"}) != 0 {
		t.Errorf("without groups: %+v", alone)
	}
}

// TestUnusableRolloutsAreRefused fails when an invalid field is accepted, or its place isn't reported.
func TestUnusableRolloutsAreRefused(t *testing.T) {
	many := &v1.Rollout{}
	for i := range 17 {
		many.Groups = append(many.Groups, ring(strings.Repeat("a", i+1), "0"))
	}
	selector := ring("canary", "0")
	selector.ClusterSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
	start, limit := ring("canary", "0"), ring("canary", "0")
	start.Start, limit.MaxFailures = "Later", of("x")
	for _, test := range []struct {
		why, field string
		spec       *v1.Rollout
	}{
		{"too many groups", "groups", many},
		{"a group named rest", `groups["rest"].name`, &v1.Rollout{Groups: []v1.RolloutGroup{ring("rest", "0")}}},
		{"two of a name", `groups["a"].name`, &v1.Rollout{Groups: []v1.RolloutGroup{ring("a", "0"), ring("a", "1")}}},
		{"a selector", `groups["canary"].clusterSelector`, &v1.Rollout{Groups: []v1.RolloutGroup{selector}}},
		{"a start", `groups["canary"].start`, &v1.Rollout{Groups: []v1.RolloutGroup{start}}},
		{"a limit of a group", `groups["canary"].maxFailures`, &v1.Rollout{Groups: []v1.RolloutGroup{limit}}},
		{"soak below zero", "soak", &v1.Rollout{Pace: v1.Pace{Soak: within(-1)}}},
		{"no time at all", "progressDeadline", &v1.Rollout{Pace: v1.Pace{ProgressDeadline: within(0)}}},
	} {
		_, err := rollout.NewStrategy(test.spec)
		if invalid := (*rollout.InvalidError)(nil); !errors.As(err, &invalid) || invalid.Field != test.field {
			t.Errorf("%s: %v, expected a refusal of %s", test.why, err, test.field)
		}
	}
}

// TestAClusterIsInTheFirstGroupThatSelectsIt fails when another group than the first that matches counts, or a
// cluster is in none.
func TestAClusterIsInTheFirstGroupThatSelectsIt(t *testing.T) {
	made := strategy(t, &v1.Rollout{Groups: []v1.RolloutGroup{
		ring("canary", "0"),
		{Name: "early", ClusterSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "ring", Operator: metav1.LabelSelectorOpIn, Values: []string{"0", "1"}},
		}}},
		{Name: "nobody"},
	}})
	for want, cluster := range []labels.Set{{"ring": "0"}, {"ring": "1"}, nil, {"ring": "2"}} {
		if want == 2 {
			continue // a group without selector has no cluster
		}
		if got := made.GroupOf(cluster); got != want {
			t.Errorf("%v is in group %d, expected %d", cluster, got, want)
		}
	}
	if absent := strategy(t, nil); absent.GroupOf(nil) != 0 || absent.Groups[0].MaxConcurrency.Places(5000) != 5000 {
		t.Errorf("without rollout: %+v", absent)
	}
}

// TestAnnotationsOfRollouts fails when a value for another revision approves or opens a group, or a hostile one is
// accepted.
func TestAnnotationsOfRollouts(t *testing.T) {
	made := strategy(t, &v1.Rollout{Groups: []v1.RolloutGroup{ring("canary", "0"), ring("early", "1")}})
	long := strings.Repeat("a", 1<<20)
	for _, test := range []struct {
		why, value string
		approved   int
		refused    bool
	}{
		{"none", "", rollout.NoGroup, false},
		{"the first", "rev/canary", 0, false},
		{"the last", "rev/rest", 2, false},
		{"another revision", "old/rest", rollout.NoGroup, false},
		{"an unknown group", "rev/late", rollout.NoGroup, true},
		{"no revision", "/canary", rollout.NoGroup, true},
		{"no group", "rev/", rollout.NoGroup, true},
		{"no slash", "canary", rollout.NoGroup, true},
		{"much text", "rev/" + long, rollout.NoGroup, true},
		{"lines", "rev/canary\n", rollout.NoGroup, true},
	} {
		approved, err := made.ReadApproval(test.value, "rev")
		if approved != test.approved || (err != nil) != test.refused {
			t.Errorf("approve: %s: %d, %v", test.why, approved, err)
		}
		if err != nil && len(err.Error()) > 500 {
			t.Errorf("approve: %s: the message has %d bytes", test.why, len(err.Error()))
		}
	}
	for _, test := range []struct {
		why, value string
		gate       rollout.Allowance
		refused    bool
	}{
		{"none", "", rollout.FirstOnly, false},
		{"shut", rollout.GateValue("rev", 0), 0, false},
		{"two groups", rollout.GateValue("rev", 2), 2, false},
		{"another revision", "old/3", rollout.FirstOnly, false},
		{"more than there can be", "rev/18", 0, true},
		{"by rule is nothing to write", "rev/-1", 0, true},
		{"a sign", "rev/+1", 0, true},
		{"zeros before it", "rev/01", 0, true},
		{"no number", "rev/all", 0, true},
		{"a fraction", "rev/1.5", 0, true},
		{"much text", long + "/1", 0, true},
		{"no revision", "/1", 0, true},
	} {
		gate, err := rollout.ReadGate(test.value, "rev")
		if gate != test.gate || (err != nil) != test.refused {
			t.Errorf("gate: %s: %d, %v", test.why, gate, err)
		}
	}
}
