package apply

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// lastApplied is kubectl's copy of an object as applied. A stale copy confuses kubectl.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

func unpack(objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	flat := make([]*unstructured.Unstructured, 0, len(objects))
	for index, object := range objects {
		if !strings.HasSuffix(object.GetKind(), "List") || !object.IsList() {
			flat = append(flat, object)
			continue
		}
		err := object.EachListItem(func(item runtime.Object) error {
			flat = append(flat, item.(*unstructured.Unstructured))
			return nil
		})
		if err != nil {
			return nil, &ObjectError{Object: ownership.KeyOf(object), Index: index, Problem: "its items are not objects"}
		}
	}
	return flat, nil
}

// identityProblem describes an invalid identity: names become a part of paths.
func identityProblem(object *unstructured.Unstructured) string {
	if object.GetAPIVersion() == "" || object.GetKind() == "" {
		return "it has no apiVersion and kind"
	}
	if object.GetName() == "" {
		return "it has no metadata.name; generated names are not supported, since each apply would create another object"
	}
	for _, word := range []string{object.GetName(), object.GetNamespace()} {
		if len(content.IsPathSegmentName(word)) > 0 {
			return "its name or namespace has characters that are not allowed in names"
		}
	}
	return ""
}

// cleanMetadata keeps the metadata that an add-on may set. The rest is the API server's (uid, managedFields, …),
// or would decide about removal (ownerReferences, finalizers).
func cleanMetadata(object *unstructured.Unstructured) (clean map[string]any, problem string) {
	clean = map[string]any{"name": object.GetName()}
	if namespace := object.GetNamespace(); namespace != "" {
		clean["namespace"] = namespace
	}
	for _, field := range []string{"labels", "annotations"} {
		words, _, err := unstructured.NestedNullCoercingStringMap(object.Object, "metadata", field)
		if err != nil {
			return nil, "metadata." + field + " must be strings: put quotes around numbers and booleans"
		}
		delete(words, lastApplied)
		if len(words) == 0 {
			continue
		}
		untyped := make(map[string]any, len(words))
		for key, word := range words {
			untyped[key] = word
		}
		clean[field] = untyped
	}
	return clean, ""
}

func foldStringData(object *unstructured.Unstructured) (problem string) {
	plain, present := object.Object["stringData"]
	if !present || object.GroupVersionKind() != calls.SecretKind {
		return ""
	}
	delete(object.Object, "stringData")
	words, _, err := unstructured.NestedNullCoercingStringMap(map[string]any{"stringData": plain}, "stringData")
	if err != nil {
		return "stringData must be strings: put quotes around numbers and booleans"
	}
	data, _, err := unstructured.NestedMap(object.Object, "data")
	if err != nil {
		return "data must be a map"
	}
	folded := map[string]any{}
	maps.Copy(folded, data)
	for key, word := range words {
		folded[key] = base64.StdEncoding.EncodeToString([]byte(word))
	}
	object.Object["data"] = folded
	return ""
}

// Values of annotation update on a manifest.
const (
	updateCreateOnly = "create-only"
	updateRecreate   = "recreate"
)

// withoutDirectives removes $patch, a field of kubectl's and Helm's patches, if it requests to replace or merge: a
// write does that anyway. The API server refuses its other values.
func withoutDirectives(value any) any {
	switch typed := value.(type) {
	case map[string]any:
		clean := map[string]any{}
		for field, inner := range typed {
			if field != "$patch" || inner != "replace" && inner != "merge" {
				clean[field] = withoutDirectives(inner)
			}
		}
		return clean
	case []any:
		clean := make([]any, len(typed))
		for i, inner := range typed {
			clean[i] = withoutDirectives(inner)
		}
		return clean
	}
	return value
}

func hasDirective(value any) bool {
	switch typed := value.(type) {
	case map[string]any:
		if _, has := typed["$patch"]; has {
			return true
		}
		for _, inner := range typed {
			if hasDirective(inner) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(typed, hasDirective)
	}
	return false
}
