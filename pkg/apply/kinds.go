package apply

import (
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-addons/trellis/pkg/ownership"
)

// Kinds that are treated in a way of their own.
var (
	secretKind     = corev1.SchemeGroupVersion.WithKind("Secret")
	claimGK        = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	podGK          = schema.GroupKind{Kind: "Pod"}
	jobGK          = schema.GroupKind{Group: "batch", Kind: "Job"}
	apiServiceGK   = schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}
	namespaces     = corev1.SchemeGroupVersion.WithResource("namespaces")
	definitions    = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	apiServices    = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	storageClasses = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}
)

// The values of annotation update on a manifest.
const (
	updateCreateOnly = "create-only"
	updateRecreate   = "recreate"
)

func isNamespace(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind().GroupKind() == ownership.NamespaceGK
}

func isCRD(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind().GroupKind() == ownership.DefinitionGK
}

// resource is where objects of a kind are read and written.
type resource struct {
	schema.GroupVersionResource
	namespaced bool
}

// scope of a kind, as far as it is known.
type scope int

const (
	scopeUnknown scope = iota
	scopeCluster
	scopeNamespaced
)

// scopes looks a kind's scope up.
type scopes struct {
	mapper   meta.RESTMapper
	declared map[schema.GroupVersionKind]resource
}

func (s scopes) of(gvk schema.GroupVersionKind) (scope, error) {
	var namespaced bool
	if own, found := s.declared[gvk]; found {
		namespaced = own.namespaced
	} else {
		mapping, err := s.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if meta.IsNoMatchError(err) {
			return scopeUnknown, nil
		}
		if err != nil {
			return scopeUnknown, err
		}
		namespaced = mapping.Scope.Name() == meta.RESTScopeNameNamespace
	}
	if namespaced {
		return scopeNamespaced, nil
	}
	return scopeCluster, nil
}

// declaredKinds are the kinds that CustomResourceDefinitions among the objects define. Knowing them from there spares a
// rediscovery, and the wait for discovery to catch up, after the definitions are established.
func declaredKinds(objects []*unstructured.Unstructured) map[schema.GroupVersionKind]resource {
	kinds := map[schema.GroupVersionKind]resource{}
	for _, object := range objects {
		if !isCRD(object) {
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
			kinds[gv.WithKind(kind)] = resource{GroupVersionResource: gv.WithResource(plural), namespaced: scope == "Namespaced"}
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

// definedResource is where the objects of a definition are, in the version that they are stored in: reading them needs no
// conversion then. The version is "" where it is not served.
func definedResource(definition *unstructured.Unstructured) (where schema.GroupVersionResource) {
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

// kinds finds the resources of kinds. It resets the mapper at most once, when a kind is not known: it may have been
// established after the mapper had asked.
type kinds struct {
	mapper   meta.ResettableRESTMapper
	declared map[schema.GroupVersionKind]resource
	once     sync.Once
}

// reset has the mapper ask anew, once.
func (k *kinds) reset() { k.once.Do(k.mapper.Reset) }

// find gives the resource of a kind in a version; false where it is not served.
func (k *kinds) find(gvk schema.GroupVersionKind) (resource, bool, error) {
	if own, found := k.declared[gvk]; found {
		return own, true, nil
	}
	return k.ask(gvk.GroupKind(), gvk.Version)
}

// findAny is find, but is content with any version that is served: enough to read metadata and to delete.
func (k *kinds) findAny(key ownership.Key, version string) (resource, bool, error) {
	if where, known, err := k.known(key, version); err != nil || known {
		return where, known, err
	}
	k.reset()
	return k.known(key, version)
}

// known is findAny without a reset.
func (k *kinds) known(key ownership.Key, version string) (resource, bool, error) {
	where, served, err := k.lookUp(key.GroupKind(), version)
	if err != nil || served {
		return where, served, err
	}
	return k.lookUp(key.GroupKind())
}

func (k *kinds) ask(kind schema.GroupKind, version string) (resource, bool, error) {
	if where, served, err := k.lookUp(kind, version); err != nil || served {
		return where, served, err
	}
	k.reset()
	return k.lookUp(kind, version)
}

func (k *kinds) lookUp(kind schema.GroupKind, versions ...string) (resource, bool, error) {
	mapping, err := k.mapper.RESTMapping(kind, versions...)
	if meta.IsNoMatchError(err) {
		return resource{}, false, nil
	}
	if err != nil {
		return resource{}, false, err
	}
	return resource{mapping.Resource, mapping.Scope.Name() == meta.RESTScopeNameNamespace}, true, nil
}
