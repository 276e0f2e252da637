package addonset_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/addonset"
)

func raw(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }

func labelled(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

func choices(count int) *metav1.LabelSelector {
	one := metav1.LabelSelectorRequirement{Key: "ring", Operator: metav1.LabelSelectorOpIn}
	for i := range count {
		one.Values = append(one.Values, fmt.Sprint(i))
	}
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{one}}
}

// monitoring is a right set, with something in every field that Validate looks at.
func monitoring() *v1.AddonSet {
	return &v1.AddonSet{Spec: v1.AddonSetSpec{
		Type: v1.AddonSetCustom, ClusterSelector: choices(256),
		Constraints: &v1.Constraints{K8sVersion: "~1.37", KKPVersion: ">= 2.30"},
		Addons: []v1.AddonSetItem{
			{Name: "crds", AddonRef: v1.AddonReference{Name: "crds", Version: "2.0.0"}, TargetNamespace: "monitoring"},
			{
				Name: "prometheus", AddonRef: v1.AddonReference{Name: "prometheus", Version: "2.x"}, TargetNamespace: "monitoring",
				Values: raw(`{"replicas":2}`), ValuesTemplate: "region: {{ .Cluster.Name | quote }}", DependsOn: []v1.AddonName{"crds"},
				ValuesFrom: []v1.ValuesSource{
					{SecretRef: &v1.KeyReference{Name: "$(cluster)-values"}}, {ConfigMapRef: &v1.KeyReference{Name: "settings"}},
					{ProviderRef: &v1.ProviderReference{Name: "backup"}},
				},
				PlatformSecretRef: &v1.PlatformSecretReference{Name: "shared-values"},
			},
		},
		Overrides: []v1.AddonSetOverride{{ClusterSelector: &metav1.LabelSelector{}, Addon: "prometheus", Values: raw(`{"replicas":1}`)}},
		Rollout:   &v1.Rollout{Groups: []v1.RolloutGroup{{Name: "canary", ClusterSelector: labelled("ring", "0")}}},
	}}
}

// Each case is red without the check that it names.
func TestWhatNoRuleOfTheSchemaFindsIsRefusedByItsPlace(t *testing.T) {
	many := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for i := range 33 {
		many.MatchLabels[fmt.Sprint("k", i)] = "v"
	}
	for _, test := range []struct {
		why    string
		change func(*v1.AddonSetSpec)
		says   string
	}{
		{"a selector is missing", func(s *v1.AddonSetSpec) { s.ClusterSelector = nil }, "spec.clusterSelector: it is missing"},
		{"a label can't be one", func(s *v1.AddonSetSpec) { s.ClusterSelector = labelled("a b", "c") }, "spec.clusterSelector: "},
		{"too many labels", func(s *v1.AddonSetSpec) { s.ClusterSelector = many }, "spec.clusterSelector: it has more than 32"},
		{"too many values of a label", func(s *v1.AddonSetSpec) { s.ClusterSelector = choices(257) },
			"spec.clusterSelector.matchExpressions[0].values: there are 257"},
		{"an operator without values", func(s *v1.AddonSetSpec) { s.ClusterSelector = choices(0) }, "spec.clusterSelector: "},
		{"no range of Kubernetes versions", func(s *v1.AddonSetSpec) { s.Constraints.K8sVersion = "1 - 2 - 3" },
			`spec.constraints.k8sVersion: range "1 - 2 - 3" can't be parsed`},
		{"no range of KKP versions", func(s *v1.AddonSetSpec) { s.Constraints.KKPVersion = ">= 1 - 2" }, "spec.constraints.kkpVersion: "},
		{"no range of the add-on's versions", func(s *v1.AddonSetSpec) { s.Addons[1].AddonRef.Version = ">1 - 2" },
			`spec.addons[1] ("prometheus").addonRef.version: `},
		{"two items of one name", func(s *v1.AddonSetSpec) { s.Addons[0].Name = "prometheus" }, `spec.addons[1] ("prometheus").name: another item`},
		{"values in a list", func(s *v1.AddonSetSpec) { s.Addons[1].Values = raw(`[1]`) }, `spec.addons[1] ("prometheus").values: `},
		{"the reserved key", func(s *v1.AddonSetSpec) { s.Addons[1].Values = raw(`{"kkp":{}}`) },
			`spec.addons[1] ("prometheus").values: values of the set: key "kkp" is reserved`},
		{"values that are too deep", func(s *v1.AddonSetSpec) {
			s.Addons[0].Values = raw(strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40))
		}, `spec.addons[0] ("crds").values: `},
		{"a key twice", func(s *v1.AddonSetSpec) { s.Addons[0].Values = raw(`{"a":1,"a":2}`) }, `spec.addons[0] ("crds").values: `},
		{"too large values", func(s *v1.AddonSetSpec) { s.Addons[0].Values = raw(`{"a":"` + strings.Repeat("x", 257<<10) + `"}`) },
			`spec.addons[0] ("crds").values: `},
		{"another placeholder in a name", func(s *v1.AddonSetSpec) { s.Addons[1].ValuesFrom[0].SecretRef.Name = "$(namespace)" },
			`spec.addons[1] ("prometheus").valuesFrom[0].secretRef.name: it is not a valid object name, even with $(cluster) replaced`},
		{"a path for a name", func(s *v1.AddonSetSpec) { s.Addons[1].ValuesFrom[1].ConfigMapRef.Name = "../x" },
			`spec.addons[1] ("prometheus").valuesFrom[1].configMapRef.name: `},
		{"a path for a provider's name", func(s *v1.AddonSetSpec) { s.Addons[1].ValuesFrom[2].ProviderRef.Name = "a/b" },
			`spec.addons[1] ("prometheus").valuesFrom[2].providerRef.name: `},
		{"a template that does not parse", func(s *v1.AddonSetSpec) { s.Addons[1].ValuesTemplate = "a: {{ if }}" },
			`spec.addons[1] ("prometheus").valuesTemplate: line 1`},
		{"a path for the platform's Secret", func(s *v1.AddonSetSpec) { s.Addons[1].PlatformSecretRef.Name = "A" },
			`spec.addons[1] ("prometheus").platformSecretRef.name: `},
		{"an item that owners may leave out is needed", func(s *v1.AddonSetSpec) { s.Addons[0].AllowOptOut = true },
			`spec.addons[1] ("prometheus").dependsOn[0]: owners of clusters may leave out item "crds"`},
		{"an unknown item is needed", func(s *v1.AddonSetSpec) { s.Addons[1].DependsOn = []v1.AddonName{"crds", "cni"} },
			`spec.addons[1] ("prometheus").dependsOn[1]: the set has no item "cni"`},
		{"an unknown item is overridden", func(s *v1.AddonSetSpec) { s.Overrides[0].Addon = "grafana" },
			`spec.overrides[0].addon: the set has no item "grafana"`},
		{"an override without clusters", func(s *v1.AddonSetSpec) { s.Overrides[0].ClusterSelector = nil }, "spec.overrides[0].clusterSelector: "},
		{"the reserved key in an override", func(s *v1.AddonSetSpec) { s.Overrides[0].Values = raw(`{"kkp":1}`) }, "spec.overrides[0].values: "},
		{"a group without clusters", func(s *v1.AddonSetSpec) { s.Rollout.Groups[0].ClusterSelector = nil },
			`spec.rollout.groups[0] ("canary").clusterSelector: it is missing`},
	} {
		t.Run(test.why, func(t *testing.T) {
			set := monitoring()
			if err := addonset.Validate(set); err != nil {
				t.Fatalf("the right set is refused: %v", err)
			}
			test.change(&set.Spec)
			err := addonset.Validate(set)
			if field, ok := err.(*addonset.FieldError); !ok || !strings.HasPrefix(field.Error(), test.says) {
				t.Errorf("got %v, expected a refusal that begins with %q", err, test.says)
			}
		})
	}
}

func needing(needs map[string]string) *v1.AddonSet {
	set := monitoring()
	set.Spec.Addons, set.Spec.Overrides = nil, nil
	for _, name := range []string{"a", "b", "c", "d"} {
		item := v1.AddonSetItem{Name: v1.AddonName(name)}
		for needed := range strings.FieldsSeq(needs[name]) {
			item.DependsOn = append(item.DependsOn, v1.AddonName(needed))
		}
		set.Spec.Addons = append(set.Spec.Addons, item)
	}
	return set
}

// Red without the check of circles: a, b and c wait for each other in every cluster.
func TestItemsThatWaitForEachOtherAreRefused(t *testing.T) {
	for _, test := range []struct {
		why   string
		needs map[string]string
		want  []string
	}{
		{"a diamond is none", map[string]string{"a": "b c", "b": "d", "c": "d"}, nil},
		{"one needs itself", map[string]string{"b": "b"}, []string{"b"}},
		{"a circle that others lead into", map[string]string{"a": "b", "b": "c", "c": "d", "d": "b"}, []string{"b", "c", "d"}},
	} {
		t.Run(test.why, func(t *testing.T) {
			var got []string
			switch err := addonset.Validate(needing(test.needs)).(type) {
			case nil:
			case *addonset.CycleError:
				if got = err.Items; !strings.Contains(err.Error(), "cycle") {
					t.Errorf("the refusal does not say what is wrong: %v", err)
				}
			default:
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("circle (-want +got):\n%s", diff)
			}
		})
	}
}

// Red without the limit: the objects of seeds and their caches hold every set.
func TestASpecThatIsTooLargeIsRefused(t *testing.T) {
	set := monitoring()
	for i := range 3 {
		item := set.Spec.Addons[0]
		item.Name, item.Values = v1.AddonName(fmt.Sprint("more-", i)), raw(`{"a":"`+strings.Repeat("x", 200<<10)+`"}`)
		set.Spec.Addons = append(set.Spec.Addons, item)
		err := addonset.Validate(set)
		if large, isLarge := err.(*addonset.TooLargeError); isLarge != (i == 2) || (isLarge && large.Max != 512<<10) {
			t.Errorf("with %d KiB: %v", 200*(i+1), err)
		}
	}
}

// Red when a copy that was made anew loses what its set has, or a set that is no copy makes itself older.
func TestACopyIsAsOldAsItsSet(t *testing.T) {
	made := func(name, created string, role string) *v1.AddonSet {
		set := &v1.AddonSet{}
		set.Name, set.CreationTimestamp = name, metav1.Unix(1_000_000_000, 0)
		set.Labels, set.Annotations = map[string]string{v1.LabelRole: role}, map[string]string{v1.AnnotationCreated: created}
		return set
	}
	plain := made("m", "", v1.RoleCopy)
	for _, test := range []struct {
		why  string
		set  *v1.AddonSet
		want int
	}{
		{"made of an older one", made("z", "2001-01-01T00:00:00Z", v1.RoleCopy), -1},
		{"made of a younger one", made("a", "2021-01-01T00:00:00Z", v1.RoleCopy), 1},
		{"no copy", made("z", "2001-01-01T00:00:00Z", ""), 1},
		{"no time", made("z", "long ago", v1.RoleCopy), 1},
	} {
		if got := addonset.Compare(test.set, plain); got != test.want || addonset.Compare(plain, test.set) != -test.want {
			t.Errorf("%s: %d, want %d", test.why, got, test.want)
		}
	}
}

// Red without any of the three: the set that has a name would depend on the order of a list.
func TestTheHigherPriorityHasWhatTwoWantThenTheOlderThenByName(t *testing.T) {
	made := func(name string, priority int32, second int64) *v1.AddonSet {
		set := &v1.AddonSet{Spec: v1.AddonSetSpec{Priority: priority}}
		set.Name, set.CreationTimestamp = name, metav1.Unix(second, 0)
		return set
	}
	order := []*v1.AddonSet{made("z", 7, 9), made("y", 1, 3), made("a", 1, 5), made("b", 1, 5), made("0", 0, 0)}
	for i, a := range order {
		for j, b := range order {
			got := addonset.Compare(a, b)
			if want := i - j; got*want < 0 || (got == 0) != (want == 0) {
				t.Errorf("%q and %q: %d", a.Name, b.Name, got)
			}
		}
	}
}
