package crds

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Missing are the parts of one CRD that another lacks: versions, fields, and values of enumerations, in their order,
// such as "v1.spec.addons.name". Descriptions, rules and bounds do not count.
func Missing(of, in *unstructured.Unstructured) []string {
	there := piecesOf(in)
	var missing []string
	for piece := range piecesOf(of) {
		if !there[piece] {
			missing = append(missing, piece)
		}
	}
	slices.Sort(missing)
	return missing
}

// piecesOf are the versions of a CRD, and the pieces of their schemas.
func piecesOf(crd *unstructured.Unstructured) map[string]bool {
	pieces := map[string]bool{}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, entry := range versions {
		version, _ := entry.(map[string]any)
		name, _ := version["name"].(string)
		pieces[name] = true
		form, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
		walk(name, form, pieces)
	}
	return pieces
}

// walk adds the fields and values below a schema. Entries of lists and maps have the path of the list or map.
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
