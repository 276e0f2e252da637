package main

import (
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/charts"
)

// TestBasesAreTheCharts: kustomize builds each base, and has the objects of the chart, one by one. Red when an object of a chart is not in
// the base, is another, or is there besides.
func TestBasesAreTheCharts(t *testing.T) {
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"trellis-master", "trellis-seed"} {
		crds, objects, err := charts.Render(name, namespace, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]any{}
		for _, object := range append(crds, objects...) {
			if _, isHook := object.GetAnnotations()["helm.sh/hook"]; isHook {
				continue
			}
			if labels := object.GetLabels(); labels["app.kubernetes.io/managed-by"] != "" {
				label(object.Object)
			}
			want[key(object)] = object.Object
		}
		if diff := cmp.Diff(want, built(t, filepath.Join(root, "deploy", "kustomize", name))); diff != "" {
			t.Errorf("%s: run `make generate` (-chart +base):\n%s", name, diff)
		}
	}
}

// label names kustomize in place of Helm, in an object and in its pod.
func label(value map[string]any) {
	for name, inner := range value {
		if name == "app.kubernetes.io/managed-by" {
			value[name] = "kustomize"
		}
		if below, ok := inner.(map[string]any); ok {
			label(below)
		}
	}
}

func key(object *unstructured.Unstructured) string {
	return object.GroupVersionKind().String() + " " + object.GetNamespace() + "/" + object.GetName()
}

// built are the objects of a base, by the kustomize of kubectl.
func built(t *testing.T, folder string) map[string]any {
	t.Helper()
	cache, err := binaries.Cache()
	if err != nil {
		t.Fatal(err)
	}
	kubectl, err := binaries.Find(cache, "kubectl", "")
	if err != nil {
		t.Fatal(err)
	}
	output, err := exec.CommandContext(t.Context(), kubectl, "kustomize", folder).Output()
	if err != nil {
		t.Fatalf("kubectl kustomize %s: %v", folder, err)
	}
	found := map[string]any{}
	documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(string(output)), len(output))
	for {
		object := &unstructured.Unstructured{}
		err := documents.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		found[key(object)] = object.Object
	}
}
