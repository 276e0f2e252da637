package images

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Pulls are the namespaces that need a Secret: those with pods, among prepared objects, that name it in
// imagePullSecrets, and those that the objects label for it. They are sorted.
func Pulls(objects []*unstructured.Unstructured, secret string) []string {
	found := map[string]bool{}
	for _, object := range objects {
		if object.GetAPIVersion() == "v1" && object.GetKind() == "Namespace" {
			if object.GetLabels()[v1.LabelPullSecret] == "true" {
				found[object.GetName()] = true
			}
			continue
		}
		if namespace := object.GetNamespace(); namespace != "" && !found[namespace] && pulls(object, secret) {
			found[namespace] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func pulls(object *unstructured.Unstructured, secret string) bool {
	spec, ok := podOf(object)
	return ok && slices.ContainsFunc(entries(spec["imagePullSecrets"]), func(one map[string]any) bool { return one["name"] == secret })
}

// podOf is the pod of one of Kubernetes' own kinds.
func podOf(object *unstructured.Unstructured) (spec map[string]any, ok bool) {
	path, ok := podSpecs[object.GroupVersionKind().GroupKind()]
	if !ok {
		return nil, false
	}
	spec = object.Object
	for _, field := range path {
		if spec, ok = spec[field].(map[string]any); !ok {
			return nil, false
		}
	}
	return spec, true
}
