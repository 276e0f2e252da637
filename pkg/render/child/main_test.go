package child_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/child"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
	"github.com/trellis-addons/trellis/test/rendering"
)

// probe is a method of these tests only: a renderer whose behaviour its add-on's name selects, like a compromised
// child.
const probe = "probe"

// others are functions that turn the test binary into another process if a variable requests it.
var others []func()

func TestMain(m *testing.M) {
	renderers := rendering.Renderers()
	renderers.Methods[probe] = prober{}
	child.Serve(renderers)
	for _, other := range others {
		other()
	}
	os.Exit(m.Run())
}

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: "

func folder(pairs ...string) fstest.MapFS {
	content := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		content[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return content
}

// chartFolder is folder with a Chart.yaml.
func chartFolder(pairs ...string) fstest.MapFS {
	return folder(append([]string{"Chart.yaml", "apiVersion: v2\nname: demo\nversion: 1.2.3\n"}, pairs...)...)
}

func input(content fstest.MapFS) render.Input {
	return render.Input{
		Addon: "demo", Tenant: "cluster-a", Content: content, Values: map[string]any{"a": int64(1), "b": "text", "c": map[string]any{"d": nil}},
		Data:         templatedata.Data{Cluster: templatedata.ClusterData{Name: "47s2ddlfgj"}},
		Release:      render.Release{Name: "my-release", Namespace: "my-namespace", Revision: 1, IsInstall: true},
		Capabilities: render.Capabilities{KubeVersion: "v1.36.3", APIVersions: []string{"v1", "apps/v1"}},
	}
}

func renderWith(t *testing.T, pool *child.Pool, method string, content fstest.MapFS) (render.Result, error) {
	t.Helper()
	return pool.Renderer(method, child.AllFiles).Render(t.Context(), input(content))
}

// expectHarmless checks that the pool still serves others.
func expectHarmless(t *testing.T, pool *child.Pool) {
	t.Helper()
	harmless := input(folder("a.yaml", configMap+"harmless"))
	harmless.Tenant = "cluster-b"
	result, err := pool.Renderer(rendering.GoTemplate, child.AllFiles).Render(t.Context(), harmless)
	if err != nil || len(result.Objects) != 1 {
		t.Errorf("another tenant's rendering gives %v, %v", result.Objects, err)
	}
}

func expectExhausted(t *testing.T, err error, limits ...string) {
	t.Helper()
	var exhausted *render.ExhaustedError
	if !errors.As(err, &exhausted) {
		t.Fatalf("got %v, want ExhaustedError of %q", err, limits)
	}
	if !slices.Contains(limits, exhausted.Limit) {
		t.Errorf("the child was ended for %q, want %q", exhausted.Limit, limits)
	}
}

var _ render.Renderer = prober{}

type prober struct{}

// Render implements render.Renderer.
func (prober) Render(ctx context.Context, input render.Input) (render.Result, error) {
	act, known := probes[input.Addon]
	if !known {
		return render.Result{}, errors.New("no such probe")
	}
	return act(ctx, input)
}
