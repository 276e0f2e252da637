package addonset

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// TestValuesThatAFormRefusesBlockTheItem fails when values that the form of a version refuses are written to a
// cluster, which fails with them; when they block clusters whose version or overrides correct them; and when the set
// has to provide values that other layers may add.
func TestValuesThatAFormRefusesBlockTheItem(t *testing.T) {
	t.Parallel()
	merged := &v1.AddonCatalogue{}
	merged.Name, merged.Annotations = "web", map[string]string{v1.AnnotationKKPVersion: "2.31.0"}
	about := v1.Addon{Name: "web"}
	for version, constraint := range map[string]v1.VersionRange{"1.0.0": "< 1.37", "2.0.0": ">= 1.37"} {
		one := v1.AddonVersion{
			Version: version, Constraints: &v1.Constraints{K8sVersion: constraint},
			Source:   &v1.Source{Docker: &v1.ImageSource{Image: "registry.example/web:" + version}},
			Template: &v1.Template{Method: v1.MethodGoTemplate},
		}
		if version == "1.0.0" {
			one.Template.FormSpec = []v1.FormField{
				{DisplayName: "Replicas", InternalName: "replicas", Type: v1.FormNumber},
				{DisplayName: "Host", InternalName: "host", Type: v1.FormText, Required: true},
			}
		}
		about.Versions = append(about.Versions, one)
	}
	merged.Spec = v1.AddonCatalogueSpec{Type: v1.CatalogueCustom, Addons: []v1.Addon{about}}
	entry, err := catalogue.NewEntry(merged)
	if err != nil {
		t.Fatal(err)
	}
	from, made := offering(entry), setNamed("tools", itemOf("web", "web", "*"))
	made.Spec.Addons[0].Values = &runtime.RawExtension{Raw: []byte(`{"replicas":"two"}`)}
	made.Spec.Overrides = []v1.AddonSetOverride{{
		ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "large"}}, Addon: "web",
		Values: &runtime.RawExtension{Raw: []byte(`{"replicas":2}`)},
	}}
	sets := reading(t, made)
	for _, test := range []struct {
		why, version, tier string
		blocked            bool
	}{
		{"a text where a number is asked for", "v1.36.1", "small", true},
		{"an override makes it right", "v1.36.1", "large", false},
		{"the version for this cluster has no form", "v1.37.1", "small", false},
	} {
		t.Run(test.why, func(t *testing.T) {
			in := clusterOn(test.version)
			in.labels["tier"] = test.tier
			got := planner{newResolver(sets["tools"], from), newCompetitors(sets)}.planFor(in)
			isBlocked := len(got.blocked) == 1 && got.blocked[0].Reason == v1.ReasonValuesInvalid && strings.Contains(got.blocked[0].Message, "Replicas")
			if isBlocked != test.blocked || len(got.steps) == 0 != test.blocked {
				t.Errorf("blocked are %+v, and %d steps are planned", got.blocked, len(got.steps))
			}
		})
	}
}
