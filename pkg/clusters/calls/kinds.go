package calls

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// Kinds with special treatment.
var (
	NamespaceKind  = corev1.SchemeGroupVersion.WithKind("Namespace")
	SecretKind     = corev1.SchemeGroupVersion.WithKind("Secret")
	ClaimGK        = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	PodGK          = schema.GroupKind{Kind: "Pod"}
	JobGK          = schema.GroupKind{Group: "batch", Kind: "Job"}
	APIServiceGK   = schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}
	Namespaces     = corev1.SchemeGroupVersion.WithResource("namespaces")
	Definitions    = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	apiServices    = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	StorageClasses = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}
)

// IsNamespace says whether an object is a Namespace.
func IsNamespace(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind().GroupKind() == ownership.NamespaceGK
}

// IsCRD says whether an object is a CustomResourceDefinition.
func IsCRD(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind().GroupKind() == ownership.DefinitionGK
}

// Resource is the resource for reading and writing objects of a kind.
type Resource struct {
	schema.GroupVersionResource
	Namespaced bool
}

// Kinds finds resources. It resets the mapper at most once, for a kind that may be new.
type Kinds struct {
	Mapper   meta.ResettableRESTMapper
	Declared map[schema.GroupVersionKind]Resource
	once     sync.Once
}

// Reset resets the mapper, once.
func (k *Kinds) Reset() { k.once.Do(k.Mapper.Reset) }

// Find returns the resource of a kind in a version; false if it is not served.
func (k *Kinds) Find(gvk schema.GroupVersionKind) (Resource, bool, error) {
	if own, found := k.Declared[gvk]; found {
		return own, true, nil
	}
	if where, served, err := k.lookUp(gvk.GroupKind(), gvk.Version); err != nil || served {
		return where, served, err
	}
	k.Reset()
	return k.lookUp(gvk.GroupKind(), gvk.Version)
}

// FindAny is Find for any served version: enough to read metadata and to delete.
func (k *Kinds) FindAny(key ownership.Key, version string) (Resource, bool, error) {
	if where, known, err := k.Known(key, version); err != nil || known {
		return where, known, err
	}
	k.Reset()
	return k.Known(key, version)
}

// Known is FindAny without a reset.
func (k *Kinds) Known(key ownership.Key, version string) (Resource, bool, error) {
	where, served, err := k.lookUp(key.GroupKind(), version)
	if err != nil || served {
		return where, served, err
	}
	return k.lookUp(key.GroupKind())
}

func (k *Kinds) lookUp(kind schema.GroupKind, versions ...string) (Resource, bool, error) {
	mapping, err := k.Mapper.RESTMapping(kind, versions...)
	if meta.IsNoMatchError(err) {
		return Resource{}, false, nil
	}
	if err != nil {
		return Resource{}, false, err
	}
	return Resource{mapping.Resource, mapping.Scope.Name() == meta.RESTScopeNameNamespace}, true, nil
}

// Runs says whether objects of a kind run to completion.
func Runs(kind schema.GroupKind) bool { return kind == JobGK || kind == PodGK }

// HasEnded says whether a Job is complete or a Pod succeeded.
func HasEnded(kind schema.GroupKind, live *unstructured.Unstructured) bool {
	if kind == PodGK {
		phase, _, _ := unstructured.NestedString(live.Object, "status", "phase")
		return phase == "Succeeded"
	}
	return slices.ContainsFunc(ConditionsOf(live), func(condition metav1.Condition) bool {
		return condition.Type == "Complete" && condition.Status == metav1.ConditionTrue
	})
}

// ConditionsOf are the readable conditions in the status of an object.
func ConditionsOf(live *unstructured.Unstructured) []metav1.Condition {
	read, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	conditions := make([]metav1.Condition, len(read))
	for i := range read {
		fields, _ := read[i].(map[string]any)
		word := func(field string) string { text, _ := fields[field].(string); return text }
		conditions[i] = metav1.Condition{
			Type: word("type"), Status: metav1.ConditionStatus(word("status")), Reason: word("reason"), Message: word("message"),
		}
	}
	return conditions
}
