package api

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/trellis-addons/trellis/test/binaries"
)

// crdFolder holds the CRDs of both kinds.
const crdFolder = "charts/trellis-seed/crds"

// crds reads the generated CRDs by kind.
func crds(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, crdFolder, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, crd); err != nil {
			t.Fatalf("reading %q: %v", file, err)
		}
		found[crd.Spec.Names.Kind] = crd
	}
	return found
}

// node is one place of a schema: "spec.addons[].versions[]" and what stands there.
type node struct {
	path   string
	schema apiextensionsv1.JSONSchemaProps
}

// nodes lists every place of a CRD's schema in lexical order, its top being "".
func nodes(crd *apiextensionsv1.CustomResourceDefinition) []node {
	var all []node
	var walk func(path string, schema apiextensionsv1.JSONSchemaProps)
	walk = func(path string, schema apiextensionsv1.JSONSchemaProps) {
		all = append(all, node{path, schema})
		for name, property := range schema.Properties {
			walk(strings.TrimPrefix(path+"."+name, "."), property)
		}
		if schema.Items != nil && schema.Items.Schema != nil {
			walk(path+"[]", *schema.Items.Schema)
		}
	}
	walk("", *crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
	slices.SortFunc(all, func(a, b node) int { return strings.Compare(a.path, b.path) })
	return all
}

func TestSchemasKeepTheConventions(t *testing.T) {
	for kind, crd := range crds(t) {
		for _, place := range nodes(crd) {
			for _, complaint := range complaints(place) {
				t.Errorf("%s %s: %s", kind, place.path, complaint)
			}
		}
	}
}

// complaints says which conventions a place breaks.
func complaints(place node) []string {
	var found []string
	schema, path := place.schema, place.path
	own := strings.HasPrefix(path, "spec") || strings.HasPrefix(path, "status")
	if !own || strings.HasPrefix(path, "status.conditions[]") || isOfASelector(path) {
		return nil
	}
	if schema.Description == "" && !strings.HasSuffix(path, "[]") {
		found = append(found, "has no description")
	}
	if schema.Type == "array" {
		found = append(found, listComplaints(schema)...)
	}
	closed := len(schema.Enum) > 0 || schema.MaxLength != nil
	if schema.Type == "string" && strings.HasPrefix(path, "spec") && !closed {
		found = append(found, "is a string of the spec without maxLength")
	}
	if len(schema.XValidations) > 0 && strings.Contains(path, "formSpec") {
		found = append(found, "has a CEL rule below formSpec, whose cost is multiplied by the list maximums")
	}
	for _, rule := range schema.XValidations {
		if rule.Message == "" {
			found = append(found, fmt.Sprintf("has rule %q without a message", rule.Rule))
		}
	}
	return found
}

// isOfASelector holds for what is Kubernetes' own in a label selector, which has no limits in its schema: a rule on the selector counts
// its terms, and package addonset bounds the rest.
func isOfASelector(path string) bool { return strings.Contains(path, "lusterSelector.match") }

func listComplaints(schema apiextensionsv1.JSONSchemaProps) []string {
	var found []string
	if schema.MaxItems == nil {
		found = append(found, "is a list without maxItems")
	}
	if schema.XListType == nil {
		found = append(found, "is a list without a list type")
	}
	return found
}

func TestStatusBeginsWithConditions(t *testing.T) {
	for kind, crd := range crds(t) {
		conditions, ok := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties["conditions"]
		if !ok || conditions.XListType == nil || *conditions.XListType != "map" {
			t.Errorf("%s: status.conditions is not a map list by type", kind)
		}
	}
}
