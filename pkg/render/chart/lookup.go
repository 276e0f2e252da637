package chart

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
)

// finder answers function lookup from given objects, and returns the guard, if there is one.
type finder struct {
	guard   *guard
	objects map[schema.GroupVersionKind][]*unstructured.Unstructured
}

// finderOf is nil if there is nothing to find. The secrets of a cluster are an object for lookup, since charts print
// their values.
func finderOf(input render.Input, guard *guard) (*finder, error) {
	objects := slices.DeleteFunc(slices.Clone(input.Found), func(found *unstructured.Unstructured) bool {
		return found.GetKind() == templatedata.SecretsKind && found.GetAPIVersion() == templatedata.SecretsAPIVersion
	})
	secrets, err := templatedata.SecretObject(input.Data)
	if err != nil {
		return nil, err
	}
	if secrets != nil {
		objects = append(objects, secrets)
	}
	if guard == nil && len(objects) == 0 {
		return nil, nil
	}
	made := &finder{guard: guard, objects: map[schema.GroupVersionKind][]*unstructured.Unstructured{}}
	for _, object := range objects {
		made.objects[object.GroupVersionKind()] = append(made.objects[object.GroupVersionKind()], object)
	}
	return made, nil
}

// GetClientFor implements engine.ClientProvider. A kind has namespaces if an object of it has one.
func (f *finder) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	if f.guard != nil && apiVersion == guardGroup && kind == guardKind {
		functions := map[string]any{"text": f.guard.text, "data": f.guard.data, "enter": f.guard.enter, "leave": f.guard.leave}
		return guardResource{functions: functions}, false, nil
	}
	if f.guard != nil && f.guard.isForeign() {
		return kindResource{}, false, nil
	}
	found := f.objects[schema.FromAPIVersionAndKind(apiVersion, kind)]
	return kindResource{objects: found}, len(found) > 0 && found[0].GetNamespace() != "", nil
}

type guardResource struct {
	dynamic.NamespaceableResourceInterface
	functions map[string]any
}

// Get returns the guard's functions, as if they were an object.
func (r guardResource) Get(context.Context, string, metav1.GetOptions, ...string) (*unstructured.Unstructured, error) {
	return &unstructured.Unstructured{Object: r.functions}, nil
}

func (r guardResource) List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{}, "")
}

// kindResource returns to lookup copies of the objects of a kind, since templates change them.
type kindResource struct {
	dynamic.NamespaceableResourceInterface
	objects []*unstructured.Unstructured
	// within is the namespace to search; empty means all for a list, and none for one object.
	within string
}

func (r kindResource) Namespace(name string) dynamic.ResourceInterface {
	r.within = name
	return r
}

func (r kindResource) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	for _, object := range r.objects {
		if object.GetName() == name && object.GetNamespace() == r.within {
			return object.DeepCopy(), nil
		}
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{}, name)
}

// List finds nothing instead of an empty list.
func (r kindResource) List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	var list unstructured.UnstructuredList
	for _, object := range r.objects {
		if r.within == "" || object.GetNamespace() == r.within {
			list.Items = append(list.Items, *object.DeepCopy())
		}
	}
	if len(list.Items) == 0 {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, "")
	}
	list.SetAPIVersion(list.Items[0].GetAPIVersion())
	list.SetKind(list.Items[0].GetKind() + "List")
	return &list, nil
}
