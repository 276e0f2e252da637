package api

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/fleet"
)

// The API servers that every rule is tried against.
const (
	older = "older"
	newer = "newer"
)

func TestMain(m *testing.M) {
	fleet.Main(m,
		fleet.ClusterOptions{Name: older, Release: binaries.Older},
		fleet.ClusterOptions{Name: newer, Release: binaries.Newer},
	)
}

// installed puts the CRDs into an API server, once.
var installed = map[string]func() error{older: installOnce(older), newer: installOnce(newer)}

func installOnce(name string) func() error {
	return sync.OnceValue(func() error {
		folders, err := fleet.CRDFolders()
		if err != nil {
			return err
		}
		return fleet.InstallCRDs(context.Background(), config(name), folders...)
	})
}

func config(name string) *rest.Config { return fleet.Shared().Cluster(name).Config }

// everywhere runs a test against each API server with the CRDs in it.
func everywhere(t *testing.T, test func(t *testing.T, config *rest.Config)) {
	t.Helper()
	for _, name := range []string{older, newer} {
		t.Run(name, func(t *testing.T) {
			if err := installed[name](); err != nil {
				t.Fatalf("installing the CRDs: %v", err)
			}
			test(t, config(name))
		})
	}
}

// objects writes to one API server, without keeping anything but what keep is asked for.
type objects struct {
	client dynamic.Interface
}

func newObjects(t *testing.T, config *rest.Config) objects {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return objects{client}
}

func (o objects) of(object *unstructured.Unstructured) dynamic.ResourceInterface {
	resource := schema.GroupVersionResource{
		Group: "kubermatic.k8c.io", Version: "v1", Resource: strings.ToLower(object.GetKind()) + "s",
	}
	return o.client.Resource(resource).Namespace("default")
}

// try creates the object strictly, and only as a dry run.
func (o objects) try(ctx context.Context, object *unstructured.Unstructured) error {
	options := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}
	_, err := o.of(object).Create(ctx, object, options)
	return err
}

// keep creates the object strictly until the test ends.
func (o objects) keep(t *testing.T, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	created, err := o.of(object).Create(t.Context(), object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		t.Fatalf("creating %s %q: %v", object.GetKind(), object.GetName(), err)
	}
	t.Cleanup(func() {
		if err := o.of(object).Delete(context.Background(), object.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Errorf("deleting %s %q: %v", object.GetKind(), object.GetName(), err)
		}
	})
	return created
}

// parse reads one object.
func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict([]byte(text), &object.Object); err != nil {
		t.Fatalf("parsing %q: %v", text, err)
	}
	return object
}

// edits are changes to an object: a dotted path with list indexes ("spec.addons.0.name") and the YAML to put there; ""
// takes the field away.
type edits map[string]string

// on makes a copy of the object with the edits.
func (e edits) on(t *testing.T, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	changed := object.DeepCopy()
	for path, text := range e {
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			t.Fatalf("parsing %q for %q: %v", text, path, err)
		}
		put(t, changed.Object, strings.Split(path, "."), integers(t, value), text == "")
	}
	return changed
}

func put(t *testing.T, at any, path []string, value any, remove bool) {
	t.Helper()
	switch place := at.(type) {
	case map[string]any:
		if len(path) > 1 {
			put(t, place[path[0]], path[1:], value, remove)
			return
		}
		place[path[0]] = value
		if remove {
			delete(place, path[0])
		}
	case []any:
		index, err := strconv.Atoi(path[0])
		if err != nil || index >= len(place) {
			t.Fatalf("no list item %q", path[0])
		}
		if len(path) > 1 {
			put(t, place[index], path[1:], value, remove)
			return
		}
		place[index] = value
	default:
		t.Fatalf("nothing holds %q", path)
	}
}

// integers makes whole numbers of YAML into int64, as unstructured objects want them.
func integers(t *testing.T, value any) any {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"value": value})
	if err != nil {
		t.Fatal(err)
	}
	holder := &unstructured.Unstructured{}
	wrapped := append([]byte(`{"apiVersion":"v1","kind":"Value",`), raw[1:]...)
	if err := holder.UnmarshalJSON(wrapped); err != nil {
		t.Fatal(err)
	}
	return holder.Object["value"]
}
