package endtoend_test

import "k8s.io/apimachinery/pkg/runtime/schema"

// kindsOf are the kinds that the add-on applies.
func kindsOf(name string) []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		{Version: "v1", Kind: "Namespace"},
		{Version: "v1", Kind: "ConfigMap"},
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		{Group: name + ".crash.example", Version: "v1", Kind: "Probe"},
	}
}
