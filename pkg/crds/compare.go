package crds

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Missing are what one CRD knows and another does not: versions, fields, and values of enumerations,
// in their order, such as "v1.spec.addons.name". Descriptions, rules and bounds are none of it, and
// neither is a version that the first does not serve: no client has objects in it.
func Missing(of, in *unstructured.Unstructured) []string {
	there := map[string]bool{}
	for _, version := range versionsIn(in) {
		know(version, there)
	}
	pieces := map[string]bool{}
	for _, version := range versionsIn(of) {
		if version["served"] != false {
			know(version, pieces)
		}
	}
	var missing []string
	for piece := range pieces {
		if !there[piece] {
			missing = append(missing, piece)
		}
	}
	slices.Sort(missing)
	return missing
}

func versionsIn(crd *unstructured.Unstructured) (versions []map[string]any) {
	all, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, entry := range all {
		version, _ := entry.(map[string]any)
		versions = append(versions, version)
	}
	return versions
}

// know adds a version, and the pieces of its schema.
func know(version map[string]any, pieces map[string]bool) {
	name, _ := version["name"].(string)
	pieces[name] = true
	form, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
	walk(name, form, pieces)
}

// walk adds the fields and values below a schema. Entries of lists and maps have the path of these.
func walk(path string, form map[string]any, pieces map[string]bool) {
	properties, _ := form["properties"].(map[string]any)
	for name, inner := range properties {
		below, _ := inner.(map[string]any)
		at := path + "." + name
		pieces[at] = true
		walk(at, below, pieces)
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if below, ok := form[key].(map[string]any); ok {
			walk(path, below, pieces)
		}
	}
	values, _ := form["enum"].([]any)
	for _, value := range values {
		pieces[fmt.Sprintf("%s=%v", path, value)] = true
	}
}
