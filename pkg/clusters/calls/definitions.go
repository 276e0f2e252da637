package calls

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// DeclaredKinds are the kinds that CustomResourceDefinitions among the objects define. With them,
// no discovery is needed once the definitions are established.
func DeclaredKinds(objects []*unstructured.Unstructured) map[schema.GroupVersionKind]Resource {
	kinds := map[schema.GroupVersionKind]Resource{}
	for _, object := range objects {
		if !IsCRD(object) {
			continue
		}
		group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
		plural, _, _ := unstructured.NestedString(object.Object, "spec", "names", "plural")
		scope, _, _ := unstructured.NestedString(object.Object, "spec", "scope")
		if group == "" || kind == "" || plural == "" || strings.ContainsAny(group+plural, "/%") {
			continue
		}
		for _, version := range servedVersions(object) {
			gv := schema.GroupVersion{Group: group, Version: version}
			kinds[gv.WithKind(kind)] = Resource{GroupVersionResource: gv.WithResource(plural), Namespaced: scope == "Namespaced"}
		}
	}
	return kinds
}

func servedVersions(definition *unstructured.Unstructured) (names []string) {
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, version := range versions {
		fields, _ := version.(map[string]any)
		name, _ := fields["name"].(string)
		if served, _ := fields["served"].(bool); served && name != "" && !strings.ContainsAny(name, "/%") {
			names = append(names, name)
		}
	}
	return names
}

// DefinedResource is in the stored version, which needs no conversion; "" if it is not served.
func DefinedResource(definition *unstructured.Unstructured) (where schema.GroupVersionResource) {
	where.Group, _, _ = unstructured.NestedString(definition.Object, "spec", "group")
	where.Resource, _, _ = unstructured.NestedString(definition.Object, "spec", "names", "plural")
	served := servedVersions(definition)
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, version := range versions {
		fields, _ := version.(map[string]any)
		name, _ := fields["name"].(string)
		if stored, _ := fields["storage"].(bool); stored && slices.Contains(served, name) {
			where.Version = name
		}
	}
	return where
}

// Establishment reads the conditions of a CustomResourceDefinition.
func Establishment(definition *unstructured.Unstructured) (established bool, trouble string) {
	for _, condition := range ConditionsOf(definition) {
		isTrue, isFalse := condition.Status == metav1.ConditionTrue, condition.Status == metav1.ConditionFalse
		switch {
		case condition.Type == "Established":
			established = isTrue
		case condition.Type == "NamesAccepted" && isFalse:
			trouble = ": its names are not accepted" + reasonOf(condition)
		case condition.Type == "NonStructuralSchema" && isTrue:
			trouble = ": its schema is not structural" + reasonOf(condition)
		}
	}
	return established, trouble
}

// reasonOf is a condition's reason and message, which in a definition contain names and paths only.
func reasonOf(condition metav1.Condition) string {
	return ", " + CutText(strings.TrimSuffix(condition.Reason+": "+condition.Message, ": "))
}
