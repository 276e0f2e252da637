package crds

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/trellis-addons/trellis/charts"
)

// definition is a CRD with one version, v1.
func definition(t *testing.T, form string) *unstructured.Unstructured {
	t.Helper()
	var schema map[string]any
	if err := yaml.Unmarshal([]byte(form), &schema); err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"versions": []any{
		map[string]any{"name": "v1", "schema": map[string]any{"openAPIV3Schema": schema}},
	}}}}
}

// Red when a field, a value or a version that objects may have is not seen, wherever it stands, and when something is that no object has.
func TestMissingIsWhatObjectsMayHave(t *testing.T) {
	const older = `{properties: {spec: {properties: {mode: {enum: [A]}, list: {items: {properties: {a: {}}}}, map: {additionalProperties: {}}}}}}`
	for _, test := range []struct {
		why, newer string
		missing    []string
	}{
		{"the same", older, nil},
		{"other words, bounds and rules", `{description: x, properties: {spec: {x-kubernetes-validations: [{rule: "true"}], properties: {
			mode: {enum: [A], description: y}, list: {maxItems: 3, items: {properties: {a: {maxLength: 3}}}}, map: {additionalProperties: {}}}}}}`, nil},
		{"a field", `{properties: {spec: {properties: {mode: {enum: [A]}, more: {}}}}}`, []string{"v1.spec.more"}},
		{"a field of a list's entries", `{properties: {spec: {properties: {list: {items: {properties: {a: {}, b: {}}}}}}}}`, []string{"v1.spec.list.b"}},
		{"a field of a map's values", `{properties: {spec: {properties: {map: {additionalProperties: {properties: {b: {}}}}}}}}`, []string{"v1.spec.map.b"}},
		{"a value", `{properties: {spec: {properties: {mode: {enum: [A, B]}}}}}`, []string{"v1.spec.mode=B"}},
	} {
		if diff := cmp.Diff(test.missing, Missing(definition(t, test.newer), definition(t, older))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.why, diff)
		}
	}
	next := definition(t, older)
	next.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)["name"] = "v2"
	if missing := Missing(next, definition(t, older)); len(missing) == 0 || missing[0] != "v2" {
		t.Errorf("a version is not seen: %q", missing)
	}
}

// Red when a program does not have the CRDs of its chart, or reads something else for one.
func TestProgramsHaveTheCRDsOfTheirCharts(t *testing.T) {
	for chart, count := range map[string]int{"trellis-master": 2, "trellis-seed": 3} {
		folder, err := charts.CRDs(chart)
		if err != nil {
			t.Fatal(err)
		}
		read, err := Read(folder)
		if err != nil || len(read) != count {
			t.Errorf("%s has %d CRDs: %v", chart, len(read), err)
		}
	}
	for why, files := range map[string]fstest.MapFS{
		"none": {}, "another kind": {"a.yaml": {Data: []byte("apiVersion: v1\nkind: Secret")}}, "no YAML": {"a.yaml": {Data: []byte("{")}},
	} {
		if _, err := Read(files); err == nil {
			t.Errorf("a folder with %s is read", why)
		}
	}
}
