package api

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// emptied are the paths of maps and lists below a value, with what is empty there.
func emptied(path string, value any, found edits) {
	switch value := value.(type) {
	case map[string]any:
		for key, one := range value {
			emptied(path+"."+key, one, found)
		}
		found[path] = "{}"
	case []any:
		for index, one := range value {
			emptied(path+"."+strconv.Itoa(index), one, found)
		}
		found[path] = "[]"
	}
}

// Flux and Argo CD apply on the server's side. Where all fields of a map go that were applied before, the API server makes null of it.
// Red when a kind refuses that null for a map or list that may be empty. A rollout is the exception: {} is 10% at a time, and null would be
// everywhere at once.
func TestWhatIsAppliedEmptyIsTaken(t *testing.T) {
	samples, err := filepath.Glob(filepath.Join("testdata", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	everywhere(t, func(t *testing.T, config *rest.Config) {
		api := newObjects(t, config)
		apply := func(object *unstructured.Unstructured) error {
			_, err := api.of(object).Apply(t.Context(), object.GetName(), object, metav1.ApplyOptions{FieldManager: "flux"})
			return err
		}
		for _, sample := range samples {
			full := readSample(t, sample)
			full.SetNamespace("default")
			if err := apply(full); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_, _ = api.of(full).Patch(context.Background(), full.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
					metav1.PatchOptions{})
				_ = api.of(full).Delete(context.Background(), full.GetName(), metav1.DeleteOptions{})
			})
			paths := edits{}
			emptied("spec", full.Object["spec"], paths)
			for path, empty := range paths {
				if path == "spec" || apierrors.IsInvalid(api.try(t.Context(), named(edits{path: empty}.on(t, full), "other"))) {
					continue
				}
				emptied := edits{path: empty}.on(t, full)
				err := apply(emptied)
				if isNull := err != nil && strings.Contains(err.Error(), `"null"`); isNull != (path == "spec.rollout") {
					t.Errorf("%s %s: %v", filepath.Base(sample), path, err)
				}
				if found := api.get(t, full); err == nil && isNullAt(found.Object, path) {
					sameInGo(t, found) // null is read as none
				}
				if err := apply(full); err != nil {
					t.Fatal(path, err)
				}
			}
		}
	})
}

func (o objects) get(t *testing.T, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	found, err := o.of(object).Get(t.Context(), object.GetName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func isNullAt(at any, path string) bool {
	for key := range strings.SplitSeq(path, ".") {
		switch place := at.(type) {
		case map[string]any:
			at = place[key]
		case []any:
			index, err := strconv.Atoi(key)
			if err != nil || index >= len(place) {
				return false
			}
			at = place[index]
		}
	}
	return at == nil
}

func named(object *unstructured.Unstructured, name string) *unstructured.Unstructured {
	object.SetName(name)
	return object
}
