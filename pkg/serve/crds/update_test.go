package crds

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trellis-addons/trellis/test/fleet"
)

// thingsCRD has a field of each of these names.
func thingsCRD(t *testing.T, fields ...string) *unstructured.Unstructured {
	t.Helper()
	made, properties := &unstructured.Unstructured{}, make([]string, len(fields))
	for i, field := range fields {
		properties[i] = field + ": {type: string}"
	}
	if err := yaml.Unmarshal([]byte(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.example.com},
		spec: {group: example.com, names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}, scope: Namespaced, versions: [
		{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {`+strings.Join(properties, ", ")+`}}}}]}}`),
		&made.Object); err != nil {
		t.Fatal(err)
	}
	return made
}

// Red when a CRD is not made, brought up, or served at the end, and when one that a newer release brought loses a field.
func TestUpdateLosesNothing(t *testing.T) {
	f := fleet.ForTest(t, fleet.ClusterOptions{Name: "crds"})
	c, err := client.New(f.Cluster("crds").Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		fields  []string
		reports string
	}{
		{[]string{"a"}, "is new"},
		{[]string{"a"}, "was up to date"},
		{[]string{"a", "b"}, "is up to date now"},
		{[]string{"a"}, "stays as it is, since a newer release installed it: it has v1.b"},
		{[]string{"a", "b"}, "was up to date"},
	} {
		reported, err := Update(t.Context(), c, thingsCRD(t, step.fields...))
		if err != nil || reported != step.reports {
			t.Fatalf("with fields %q the CRD %s: %v; want %q", step.fields, reported, err, step.reports)
		}
		if found, err := Get(t.Context(), c, "things.example.com"); err != nil || !IsServed(found) {
			t.Fatalf("with fields %q it is not served: %v", step.fields, err)
		}
	}
}
