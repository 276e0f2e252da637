package apply

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// inheritsDefinition says whether a CustomResourceDefinition of a deleted installation becomes ours: no version or
// field of it is lost, or its mark names our add-on and catalogue.
func (w *writer) inheritsDefinition(
	ctx context.Context, it *item, live *metav1.PartialObjectMetadata, found ownership.Ownership,
) (bool, error) {
	if !calls.IsCRD(it.object) || found.Whose != ownership.Strangers || !found.IsLeft() || w.Adopt {
		return false, nil
	}
	if mark := live.Annotations[kubermaticv1.AnnotationLeftBy]; mark != "" && mark == w.LeftBy {
		return true, nil
	}
	whole, err := calls.ReadWhole(ctx, w.target.Dynamic.Resource(calls.Definitions), calls.Place{Name: it.key.Name})
	if apierrors.IsNotFound(err) {
		return false, nil // the next reconciliation creates it
	}
	return err == nil && whole.GetUID() == live.UID && onlyAdds(whole, it.object), err
}

// onlyAdds says whether a definition has all versions and all fields of another one.
func onlyAdds(before, after *unstructured.Unstructured) bool {
	for _, path := range [][]string{{"group"}, {"scope"}, {"names", "kind"}, {"names", "plural"}} {
		one, _, _ := unstructured.NestedString(before.Object, append([]string{"spec"}, path...)...)
		other, _, _ := unstructured.NestedString(after.Object, append([]string{"spec"}, path...)...)
		if one != other {
			return false
		}
	}
	versions := versionsOf(after)
	for name, version := range versionsOf(before) {
		next := versions[name]
		if version["served"] == true && next["served"] != true || !hasFields(schemaOf(version), schemaOf(next)) {
			return false
		}
	}
	return true
}

func versionsOf(definition *unstructured.Unstructured) map[string]map[string]any {
	versions := map[string]map[string]any{}
	list, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, one := range list {
		version, _ := one.(map[string]any)
		name, _ := version["name"].(string)
		versions[name] = version
	}
	return versions
}

// schemaOf is nil for a version that does not exist.
func schemaOf(version map[string]any) map[string]any {
	schema, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
	return schema
}

// keepsUnknown is on a part of a schema whose unspecified fields are stored too.
const keepsUnknown = "x-kubernetes-preserve-unknown-fields"

// hasFields says whether a part of a schema has the fields of another one, with their types.
func hasFields(before, after map[string]any) bool {
	isOpen := after[keepsUnknown] == true
	if after == nil || before["type"] != after["type"] || before[keepsUnknown] == true && !isOpen {
		return false
	}
	fields, _ := before["properties"].(map[string]any)
	next, _ := after["properties"].(map[string]any)
	for name, field := range fields {
		part, _ := field.(map[string]any)
		now, has := next[name].(map[string]any)
		if !has && !isOpen || has && !hasFields(part, now) {
			return false
		}
	}
	return hasElements(before["items"], after["items"], isOpen) &&
		hasElements(before["additionalProperties"], after["additionalProperties"], isOpen)
}

// hasElements compares the schemas of the elements of a list or a map: a part of a schema, or true.
func hasElements(before, after any, isOpen bool) bool {
	part, isPart := before.(map[string]any)
	now, hasPart := after.(map[string]any)
	switch {
	case before == nil, before == false, after == true:
		return true
	case isPart && hasPart:
		return hasFields(part, now)
	}
	return isOpen && after == nil
}
