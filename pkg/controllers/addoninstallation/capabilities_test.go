package addoninstallation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/images"
)

// Red when a chart is rendered anew because its own kinds are served now.
func TestOwnKindsAreNoCapability(t *testing.T) {
	versions := []string{"apps/v1", "apps/v1/Deployment", "example.com/v1", "example.com/v1/Widget", "sub.example.com/v1", "v1", "v1/Pod"}
	inventory := ownership.Inventory{
		{Key: ownership.Key{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "widgets.example.com"}},
		{Key: ownership.Key{Group: "apps", Kind: "Deployment", Name: "web.apps"}},
	}
	want := []string{"apps/v1", "apps/v1/Deployment", "sub.example.com/v1", "v1", "v1/Pod"}
	if diff := cmp.Diff(want, withoutOwn(versions, inventory.DefinedGroups())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Red when what is prepared for the user cluster still names the registry.
func TestPrepareRewritesImages(t *testing.T) {
	mirrors, err := images.ParseMirrors([]string{"docker.io=mirror.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	pod := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "web"},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "web", "image": "nginx:1"}}},
	}}
	f := factsToPrepare()
	r := New(Dependencies{Images: images.Rules{Mirrors: mirrors, PullSecret: "mirror"}})
	made, outcome := r.prepare(f, render.Result{Objects: []*unstructured.Unstructured{pod}})
	if outcome != nil {
		t.Fatalf("got %#v", outcome)
	}
	want := map[string]any{
		"containers":       []any{map[string]any{"name": "web", "image": "mirror.example.com/library/nginx:1"}},
		"imagePullSecrets": []any{map[string]any{"name": "mirror"}},
	}
	if diff := cmp.Diff(want, made.objects[0].Object["spec"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
