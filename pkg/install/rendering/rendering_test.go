package rendering

import (
	"context"
	"errors"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/install/helmrelease"
	"github.com/trellis-addons/trellis/pkg/install/resolution"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/values/images"
)

// request is a request for manifests, on a cluster that serves Pods.
func request() Request {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, meta.RESTScopeNamespace)
	return Request{
		Installation: &v1.AddonInstallation{}, Mapper: mapper,
		Choice: resolution.Choice{Version: &v1.AddonVersion{Template: &v1.Template{Method: v1.MethodGoTemplate}}},
	}
}

func configMap(name, text string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "n"},
		"data": map[string]any{"text": text},
	}}
}

// TestPrepareRewritesImages fails when an object that is prepared for the user cluster still names the registry.
func TestPrepareRewritesImages(t *testing.T) {
	mirrors, err := images.ParseMirrors([]string{"docker.io=mirror.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	pod := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "web"},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "web", "image": "nginx:1"}}},
	}}
	q := request()
	r := New(nil, images.Rules{Mirrors: mirrors, PullSecret: "mirror"}, nil)
	made, err := r.prepare(&q, render.Result{Objects: []*unstructured.Unstructured{pod}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"containers":       []any{map[string]any{"name": "web", "image": "mirror.example.com/library/nginx:1"}},
		"imagePullSecrets": []any{map[string]any{"name": "mirror"}},
	}
	if diff := cmp.Diff(want, made.Objects[0].Object["spec"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAnswersOfAnotherMethodAreRefused fails when the result of a renderer that belongs to another method is
// accepted: later code relies on a chart if the method has one.
func TestAnswersOfAnotherMethodAreRefused(t *testing.T) {
	objects := []*unstructured.Unstructured{configMap("a", "b")}
	for method, answer := range map[v1.Method]render.Result{
		v1.MethodHelm: {Objects: objects}, v1.MethodGoTemplate: {Objects: objects, Chart: &render.Chart{}},
	} {
		q := request()
		q.Choice.Version.Template.Method = method
		_, err := New(nil, images.Rules{}, nil).prepare(&q, answer)
		if _, refused := errors.AsType[*render.ProtocolError](err); !refused {
			t.Errorf("%s: got %v", method, err)
		}
	}
}

// recorded is an Installed that has only a record.
type recorded struct {
	Installed
	record *revision.Record
}

func (r recorded) Record() *revision.Record { return r.record }

func (r recorded) NextRelease(name string) *helmrelease.Release {
	return &helmrelease.Release{Name: name, Namespace: "n", Revision: 1}
}

// answers is a Keeper that returns a list of answers, and stores the requests.
type answers struct {
	next  []render.Kept
	asked []render.Request
}

func (a *answers) Render(_ context.Context, request render.Request) (render.Kept, error) {
	a.asked = append(a.asked, request)
	if len(a.asked) > len(a.next) {
		return render.Kept{}, render.ErrPending
	}
	return a.next[len(a.asked)-1], nil
}

// TestChartThatBringsWhatItAsksFor: A chart reads the served kinds, and brings a definition of one of them. The test
// fails when it is not rendered again without its own group, when the next rendering ignores the random parts of the
// previous one, and when an error loses the data of earlier renderings.
func TestChartThatBringsWhatItAsksFor(t *testing.T) {
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "widgets.example.com"},
		"spec": map[string]any{"group": "example.com", "names": map[string]any{"kind": "Widget"}},
	}}
	kept := render.Kept{Result: render.Result{Objects: []*unstructured.Unstructured{definition}, Chart: &render.Chart{}}}
	first := kept
	first.Changed = []render.ObjectName{{GVK: definition.GroupVersionKind(), Name: "widgets.example.com"}}
	for why, test := range map[string]struct {
		answers []render.Kept
		ends    error
	}{"both come": {[]render.Kept{first, kept}, nil}, "the second takes longer": {[]render.Kept{first}, render.ErrPending}} {
		t.Run(why, func(t *testing.T) {
			keeper := &answers{next: test.answers}
			r, q := New(keeper, images.Rules{}, []byte("key")), request()
			q.Choice.Version.Template.Method = v1.MethodHelm
			q.Choice.Origin.Content = "content"
			q.Content.Digest = "digest"
			q.Content.FS = fstest.MapFS{"templates/a.yaml": {Data: []byte("{{ .Capabilities.APIVersions }}")}}
			q.APIVersions = func() []string { return []string{"example.com/v1", "v1"} }
			q.Installed = recorded{}
			var err error
			if q.Inputs, err = r.Inputs(q); err != nil {
				t.Fatal(err)
			}
			made, err := r.Render(t.Context(), q)
			if !errors.Is(err, test.ends) {
				t.Fatalf("got %v, want %v", err, test.ends)
			}
			var served [][]string
			for _, one := range keeper.asked {
				served = append(served, one.Input.Capabilities.APIVersions)
			}
			if diff := cmp.Diff([][]string{{"example.com/v1", "v1"}, {"v1"}}, served); diff != "" {
				t.Errorf("the kinds that the chart saw (-want +got):\n%s", diff)
			}
			if len(made.Changed) != 1 {
				t.Errorf("made up: %v, want the definition", made.Changed)
			}
			q.Brought = made.Brought
			if want, err := r.Inputs(q); err != nil || made.Inputs != want || want == q.Inputs {
				t.Errorf("inputs %v, want those without its own group, %v; %v", made.Inputs, want, err)
			}
		})
	}
}

// TestClustersDoNotShareARenderer fails when the owner of a renderer process is determined by the namespace, which
// may have several clusters.
func TestClustersDoNotShareARenderer(t *testing.T) {
	if Tenant("one", false) == Tenant("other", false) {
		t.Error("two clusters of one namespace share a renderer")
	}
}

func TestCoreAddonsRenderByThemselves(t *testing.T) {
	if Tenant("one", true) == Tenant("one", false) {
		t.Error("an add-on that sees the cluster's secrets shares a renderer with others")
	}
}
