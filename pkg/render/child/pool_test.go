package child_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/child"
	"github.com/trellis-addons/trellis/test/rendering"
)

const chartTemplate = configMap + `{{ .Release.Name }}
data: {kkp: "{{ .Values.kkp.Cluster.Name }}", values: {{ toJson .Values.c | quote }}, version: "{{ .Capabilities.KubeVersion }}"}
`

// TestSameAsInProcess: the result over the pipes equals the renderer's.
func TestSameAsInProcess(t *testing.T) {
	pool := rendering.Pool(t, child.Options{})
	for method, content := range map[string]render.Input{
		rendering.GoTemplate: input(folder("a.yaml", configMap+"{{ .Cluster.Name }}\ndata: {a: \"{{ .Variables.a }}\"}\n", "b/c.yaml", configMap+"c\nn: 1.5\ni: 7\n",
			"note.txt", "no template")),
		rendering.Helm: input(chartFolder("templates/a.yaml", chartTemplate, "values.yaml", "c: {d: 1, e: 2}\n", "crds/x.yaml",
			"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: xs.example.com}\n")),
	} {
		t.Run(method, func(t *testing.T) {
			want, err := rendering.Renderers().Methods[method].Render(t.Context(), content)
			if err != nil {
				t.Fatal(err)
			}
			got, err := pool.Renderer(method, child.AllFiles).Render(t.Context(), content)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(plain(t, want), plain(t, got)); diff != "" {
				t.Errorf("(-in process +in the child):\n%s", diff)
			}
		})
	}
}

// plain is a result as JSON.
func plain(t *testing.T, result render.Result) string {
	t.Helper()
	encoded, err := json.MarshalIndent(result, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

func TestValuesTemplate(t *testing.T) {
	pool := rendering.Pool(t, child.Options{})
	asked := render.ValuesInput{Addon: "demo", Tenant: "cluster-a", Template: "name: {{ .Cluster.Name }}\ncount: 3\n", Data: input(nil).Data}
	values, err := pool.RenderValues(t.Context(), asked)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"name": "47s2ddlfgj", "count": int64(3)}, values); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	asked.Template = "{{ with .CAPI }}port: {{ .ControlPlane.spec.port }}{{ end }}"
	asked.CAPI = map[string]any{"ControlPlane": map[string]any{"spec": map[string]any{"port": int64(6443)}}}
	if values, err := pool.RenderValues(t.Context(), asked); err != nil || values["port"] != int64(6443) { // it crosses the pipe
		t.Errorf("of Cluster API: %v, %v", values, err)
	}
	asked.Template = "{{ fail `no` }}"
	var refused *render.TemplateError
	if _, err := pool.RenderValues(t.Context(), asked); !errors.As(err, &refused) {
		t.Errorf("got %v, want TemplateError", err)
	}
}

// TestRefusalsKeepTheirType: a renderer's refusal has the same type as in process.
func TestRefusalsKeepTheirType(t *testing.T) {
	pool := rendering.Pool(t, child.Options{})
	for _, test := range []struct {
		method  string
		content render.Input
	}{
		{rendering.GoTemplate, input(folder("a.yaml", "\n{{ fail `no` }}"))},
		{rendering.GoTemplate, input(folder("a.yaml", "# nothing"))},
		{rendering.GoTemplate, input(folder("a.yaml", "{{ if }}"))},
		{rendering.GoTemplate, input(folder("a.yaml", "a: ["))},
		{rendering.Helm, input(chartFolder("templates/a.yaml", "{{ if }}"))},
		{rendering.Helm, input(chartFolder("templates/a.yaml", "a: ["))},
		{rendering.GoTemplate, input(folder("a.yaml", "{{ range until 2001 }}\n---\n"+configMap+"m-{{ . }}\n{{ end }}"))},
		{rendering.Helm, input(folder("a.yaml", ""))},
		{rendering.Helm, input(folder("Chart.yaml", "apiVersion: v2\nname: demo\nversion: 1.2.3\ndependencies: [{name: x, version: 1.0.0, repository: https://a.b}]\n"))},
	} {
		_, want := rendering.Renderers().Methods[test.method].Render(t.Context(), test.content)
		_, got := pool.Renderer(test.method, child.AllFiles).Render(t.Context(), test.content)
		if want == nil || got == nil || fmt.Sprintf("%T", want) != fmt.Sprintf("%T", got) || cmp.Diff(want, got) != "" {
			t.Errorf("in process: %T %v; in the child: %T %v", want, want, got, got)
		}
	}
}

// TestHooksCross fails when hooks, or a part of one, do not cross the pipe.
func TestHooksCross(t *testing.T) {
	asked := input(chartFolder("templates/a.yaml", configMap+"a\n", "templates/b.yaml", configMap+"b\n  annotations: {helm.sh/hook: "+
		"'post-install,test', helm.sh/hook-weight: '-3', helm.sh/hook-delete-policy: hook-failed, helm.sh/hook-output-log-policy: hook-failed}\n"))
	want, err := rendering.Renderers().Methods[rendering.Helm].Render(t.Context(), asked)
	if err != nil {
		t.Fatal(err)
	}
	got, err := rendering.Pool(t, child.Options{}).Renderer(rendering.Helm, child.AllFiles).Render(t.Context(), asked)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plain(t, want), plain(t, got)); diff != "" || len(got.Chart.Hooks) != 1 {
		t.Errorf("%d hooks (-in process +in the child):\n%s", len(got.Chart.Hooks), diff)
	}
}

// pids are the processes that ran so many renderings of a tenant.
func pids(t *testing.T, pool *child.Pool, tenant string, renderings int) []string {
	t.Helper()
	var seen []string
	for range renderings {
		asked := input(folder())
		asked.Addon, asked.Tenant = "pid", tenant
		result, err := pool.Renderer(probe, child.AllFiles).Render(t.Context(), asked)
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, result.Objects[0].GetName())
	}
	return seen
}

func TestTenantsDoNotShareAChild(t *testing.T) {
	pool := rendering.Pool(t, child.Options{Renders: 3})
	a, b, again := pids(t, pool, "a", 2), pids(t, pool, "b", 1), pids(t, pool, "a", 2)
	if a[0] != a[1] || a[1] != again[0] {
		t.Errorf("one tenant's renderings ran in %q and %q, want one child", a, again)
	}
	if b[0] == a[0] {
		t.Error("two tenants shared a child")
	}
	if again[1] == again[0] {
		t.Error("a child made more renderings than it may")
	}
	if nobody := pids(t, pool, "", 1); nobody[0] == a[0] || nobody[0] == b[0] || nobody[0] == again[1] {
		t.Error("a rendering without a tenant shared a child")
	}
}

func TestAFailedChildIsReplaced(t *testing.T) {
	pool := rendering.Pool(t, child.Options{})
	before := pids(t, pool, "cluster-a", 1)
	if _, err := renderWith(t, pool, rendering.GoTemplate, folder("a.yaml", "{{ fail `no` }}")); err == nil {
		t.Fatal("rendered")
	}
	if after := pids(t, pool, "cluster-a", 1); after[0] == before[0] {
		t.Error("the child went on after a failure")
	}
}

// TestManyTenants: more tenants than children, at the same time.
func TestManyTenants(t *testing.T) {
	pool := rendering.Pool(t, child.Options{Children: 2})
	var working sync.WaitGroup
	for tenant := range 6 {
		working.Go(func() {
			for turn := range 3 {
				name := "m-" + strconv.Itoa(tenant) + "-" + strconv.Itoa(turn)
				asked := input(folder("a.yaml", configMap+name))
				asked.Tenant = strconv.Itoa(tenant)
				result, err := pool.Renderer(rendering.GoTemplate, child.AllFiles).Render(t.Context(), asked)
				if err != nil || result.Objects[0].GetName() != name {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
	working.Wait()
}

func TestOnlyWantedFilesAreSent(t *testing.T) {
	pool := rendering.Pool(t, child.Options{})
	wanted := func(path string) bool { return strings.HasSuffix(path, ".yaml") }
	asked := input(folder("a.yaml", "", "b/c.yaml", "", "b/d.txt", "", ".hidden", ""))
	asked.Addon = "files"
	result, err := pool.Renderer(probe, wanted).Render(t.Context(), asked)
	if err != nil {
		t.Fatal(err)
	}
	if got := result.Objects[0].GetAnnotations()["files"]; got != "a.yaml b/c.yaml" {
		t.Errorf("the child has %q", got)
	}
}

// TestAloneNoChildWaits fails when a pool for checks keeps a child, or has two at a time.
func TestAloneNoChildWaits(t *testing.T) {
	registry := prometheus.NewRegistry()
	pool := rendering.Pool(t, child.Options{Children: 1, Alone: true, Renders: 1, Metrics: child.NewMetrics(registry)})
	var working sync.WaitGroup
	for tenant := range 4 {
		working.Go(func() {
			asked := input(folder("a.yaml", configMap+"a"))
			asked.Tenant = strconv.Itoa(tenant)
			if _, err := pool.Renderer(rendering.GoTemplate, child.AllFiles).Render(t.Context(), asked); err != nil {
				t.Error(err)
			}
		})
	}
	working.Wait()
	pool.Close() // waits for running renderings
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "trellis_render_children_started_total" && family.GetMetric()[0].GetCounter().GetValue() != 4 {
			t.Errorf("4 renderings started %v children", family.GetMetric()[0].GetCounter().GetValue())
		}
	}
}

func TestAfterClose(t *testing.T) {
	pool := rendering.Pool(t, child.Options{})
	pids(t, pool, "a", 1)
	pool.Close()
	if _, err := renderWith(t, pool, rendering.GoTemplate, folder("a.yaml", configMap+"a")); !errors.Is(err, child.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}
