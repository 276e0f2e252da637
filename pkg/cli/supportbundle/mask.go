package supportbundle

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// mask replaces a value.
const mask = "***"

// maskedFields are the fields, at any depth, whose leaves are replaced: values, their templates and defaults of forms.
var maskedFields = []string{"values", "valuesTemplate", "default", "options"}

// login is the part of a URL that has a user and a password, which may have "@" too.
var login = regexp.MustCompile(`//[^/\s"']+@`)

// masked is an object without values, annotations of others, and fields that an API server adds.
func masked(object *unstructured.Unstructured) map[string]any {
	return withoutValues(meta(object)).(map[string]any)
}

// meta is an object without annotations of others, such as last-applied-configuration, which has values, and without managed fields.
func meta(object *unstructured.Unstructured) map[string]any {
	annotations := object.GetAnnotations()
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		return !strings.HasPrefix(key, v1.Prefix) || key == v1.AnnotationInitialInstallations
	})
	object.SetAnnotations(annotations)
	object.SetManagedFields(nil)
	return object.Object
}

// withoutValues replaces the leaves of all masked fields. A selector's "values" is a list, and stays.
func withoutValues(content any) any {
	switch content := content.(type) {
	case map[string]any:
		for key, value := range content {
			_, isList := value.([]any)
			if slices.Contains(maskedFields, key) && (key != "values" || !isList) {
				content[key] = withoutLeaves(value)
			} else {
				content[key] = withoutValues(value)
			}
		}
	case []any:
		for i := range content {
			content[i] = withoutValues(content[i])
		}
	case string:
		return login.ReplaceAllString(content, "//"+mask+"@")
	}
	return content
}

func withoutLeaves(content any) any {
	switch content := content.(type) {
	case map[string]any:
		for key := range content {
			content[key] = withoutLeaves(content[key])
		}
		return content
	case []any:
		for i := range content {
			content[i] = withoutLeaves(content[i])
		}
		return content
	}
	return mask
}

// ofScope is masked for an installation of the cluster that the bundle is about.
func (b *bundle) ofScope(object *unstructured.Unstructured) map[string]any {
	named, _, _ := unstructured.NestedString(object.Object, "spec", "clusterName")
	if b.scope.Name != "" && named != b.scope.Name && (named != "" || !b.scope.IsKKP()) {
		return nil
	}
	return masked(object)
}

// aboutUs is an event about one of our objects.
func aboutUs(object *unstructured.Unstructured) map[string]any {
	about, _, _ := unstructured.NestedString(object.Object, "regarding", "kind")
	if !slices.Contains([]string{"AddonInstallation", "AddonSet", "AddonCatalogue"}, about) {
		return nil
	}
	return masked(object)
}

// definition is a definition of ours without its schemas.
func definition(object *unstructured.Unstructured) map[string]any {
	group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
	if group != v1.GroupVersion.Group || !strings.HasPrefix(object.GetName(), "addon") {
		return nil
	}
	versions, _, _ := unstructured.NestedSlice(object.Object, "spec", "versions")
	for _, version := range versions {
		if of, isMap := version.(map[string]any); isMap {
			delete(of, "schema")
			delete(of, "additionalPrinterColumns")
		}
	}
	return map[string]any{"metadata": meta(object)["metadata"], "versions": versions, "status": object.Object["status"]}
}

// workload is a Deployment or Pod without the environment of its containers, with their arguments.
func workload(object *unstructured.Unstructured) map[string]any {
	pod := []string{"spec"}
	if object.GetKind() == "Deployment" {
		pod = []string{"spec", "template", "spec"}
	}
	containers, _, _ := unstructured.NestedSlice(object.Object, append(pod, "containers")...)
	var kept []any
	for _, one := range containers {
		if of, isMap := one.(map[string]any); isMap {
			kept = append(kept, map[string]any{"name": of["name"], "image": of["image"], "args": of["args"], "resources": of["resources"]})
		}
	}
	return withoutValues(map[string]any{
		"kind": object.GetKind(), "metadata": meta(object)["metadata"], "containers": kept, "status": object.Object["status"],
	}).(map[string]any)
}

// selecting lists objects that a label selector selects.
func selecting(selector string) client.ListOption {
	return &client.ListOptions{Raw: &metav1.ListOptions{LabelSelector: selector}}
}
