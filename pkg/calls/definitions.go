package calls

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// DeclaredKinds are the kinds that CustomResourceDefinitions among the objects define. Knowing them from there spares a
// rediscovery, and the wait for discovery to catch up, after the definitions are established.
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

// DefinedResource is where the objects of a definition are, in the version that they are stored in: reading them needs no
// conversion then. The version is "" where it is not served.
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
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	for _, condition := range conditions {
		fields, _ := condition.(map[string]any)
		state, _ := fields["status"].(string)
		switch fields["type"] {
		case "Established":
			established = state == string(metav1.ConditionTrue)
		case "NamesAccepted":
			if state == string(metav1.ConditionFalse) {
				trouble = ": its names are not accepted" + saidBy(fields)
			}
		case "NonStructuralSchema":
			if state == string(metav1.ConditionTrue) {
				trouble = ": its schema is not structural" + saidBy(fields)
			}
		}
	}
	return established, trouble
}

// saidBy is a condition's reason and message. Those of a definition hold its names and paths.
func saidBy(condition map[string]any) string {
	reason, _ := condition["reason"].(string)
	message, _ := condition["message"].(string)
	return ", " + CutText(strings.TrimSuffix(reason+": "+message, ": "))
}
