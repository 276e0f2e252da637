package chart_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/chart"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
)

const chartYAML = "apiVersion: v2\nname: demo\nversion: 1.2.3\nappVersion: \"9\"\n"

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: "

// folder creates a file system of "path: text" pairs, with a default Chart.yaml.
func folder(pairs ...string) fstest.MapFS {
	content := fstest.MapFS{"Chart.yaml": {Data: []byte(chartYAML)}}
	for i := 0; i < len(pairs); i += 2 {
		content[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return content
}

func input(content fstest.MapFS, values map[string]any) render.Input {
	return render.Input{
		Addon: "demo", Content: content, Values: values,
		Data:         templatedata.Data{Cluster: templatedata.ClusterData{Name: "47s2ddlfgj"}},
		Release:      render.Release{Name: "my-release", Namespace: "my-namespace", Revision: 1, IsInstall: true},
		Capabilities: render.Capabilities{KubeVersion: "v1.36.3", APIVersions: []string{"v1", "apps/v1", "apps/v1/Deployment"}},
	}
}

func renderChart(content fstest.MapFS, values map[string]any) (render.Result, error) {
	return chart.New().Render(context.Background(), input(content, values))
}

func mustRender(t *testing.T, content fstest.MapFS, values map[string]any) render.Result {
	t.Helper()
	result, err := renderChart(content, values)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func names(result render.Result) []string {
	var names []string
	for _, object := range result.Objects {
		names = append(names, object.GetKind()+"/"+object.GetName())
	}
	return names
}

// data is the data of the only ConfigMap.
func data(t *testing.T, result render.Result) map[string]any {
	t.Helper()
	if len(result.Objects) != 1 {
		t.Fatalf("got %d objects, want one", len(result.Objects))
	}
	content, _ := result.Objects[0].Object["data"].(map[string]any)
	return content
}

func TestOrderNotesHooksAndCRDs(t *testing.T) {
	crd := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.example.com}\n" +
		"spec: {group: example.com, names: {kind: Thing}, versions: [{name: v1, served: true}, {name: v0, served: false}]}\n"
	thing := func(version, name string) string {
		return "{kind: Thing, apiVersion: example.com/" + version + ", metadata: {name: " + name + "}}"
	}
	hook := func(event string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: hook, annotations: {helm.sh/hook: " + event + "}}\n"
	}
	content := folder(
		"templates/a.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n---\n"+configMap+"c\n---\n# a comment\n",
		"templates/b.yaml", `{{ if .Capabilities.APIVersions.Has "example.com/v1/Thing" }}`+thing("v1", "t")+`{{ end }}`,
		"templates/c.yaml", `{{ if .Capabilities.APIVersions.Has "example.com/v0" }}`+thing("v0", "u")+`{{ end }}`,
		"templates/ns.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: space, annotations: {helm.sh/resource-policy: keep}}\n",
		"templates/NOTES.txt", "Well done, {{ .Values.missing }}!", "templates/_helpers.tpl", `{{ define "x" }}{{ end }}`,
		"templates/tests/test.yaml", hook("test,test-success"), "crds/crd.yaml", crd,
	)
	result := mustRender(t, content, nil)
	want := []string{"CustomResourceDefinition/things.example.com", "Namespace/space", "ConfigMap/c", "Deployment/d", "Thing/t"}
	if diff := cmp.Diff(want, names(result)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if keep := result.Objects[1].GetAnnotations()["helm.sh/resource-policy"]; keep != "keep" {
		t.Error("the resource policy is gone from the object")
	}
	if !strings.HasPrefix(result.Chart.Manifest, "---\n# Source: demo/templates/ns.yaml\napiVersion: v1\n") {
		t.Errorf("the manifest is not Helm's:\n%s", result.Chart.Manifest)
	}
	for _, unwanted := range []string{"Well done", "CustomResourceDefinition", "hook"} {
		if strings.Contains(result.Chart.Manifest, unwanted) {
			t.Errorf("the manifest holds %q:\n%s", unwanted, result.Chart.Manifest)
		}
	}

	if got := len(result.Chart.Hooks); got != 1 {
		t.Errorf("%d hooks, want the test alone", got)
	}
}

func TestValuesSeenByTemplates(t *testing.T) {
	content := folder(
		"values.yaml", "a: 1\nb: {c: 2, d: 3}\nlarge: 1000000\n",
		"templates/a.yaml", configMap+"a\ndata:\n"+
			"  values: {{ omit .Values \"kkp\" | toJson | quote }}\n  same: \"{{ eq .Values.a .Values.mine }}\"\n"+
			"  cluster: {{ .Values.kkp.Cluster.Name }}\n"+
			"  release: {{ .Release.Name }}/{{ .Release.Namespace }}/{{ .Release.Revision }}/{{ .Release.IsInstall }}\n"+
			"  kube: {{ .Capabilities.KubeVersion.Version }}/{{ .Capabilities.KubeVersion.Minor }}\n  missing: \"{{ .Values.no }}\"\n",
	)
	values := map[string]any{"b": map[string]any{"c": nil, "e": int64(4)}, "mine": int64(1)}
	result := mustRender(t, content, values)
	want := map[string]any{
		"values": `{"a":1,"b":{"d":3,"e":4},"large":1000000,"mine":1}`, "same": "true", "cluster": "47s2ddlfgj",
		"release": "my-release/my-namespace/1/true", "kube": "v1.36.3/36", "missing": "",
	}
	if diff := cmp.Diff(want, data(t, result)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	chart := &render.Chart{Name: "demo", Version: "1.2.3", AppVersion: "9", Manifest: result.Chart.Manifest,
		Config: map[string]any{"b": map[string]any{"c": nil, "e": 4.0}, "mine": 1.0}}
	if diff := cmp.Diff(chart, result.Chart); diff != "" {
		t.Errorf("chart (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"b": map[string]any{"c": nil, "e": int64(4)}, "mine": int64(1)}, values); diff != "" {
		t.Errorf("the caller's values were changed (-want +got):\n%s", diff)
	}
}

func TestDependencies(t *testing.T) {
	sub := func(name string) string { return "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n" }
	content := folder(
		"Chart.yaml", chartYAML+"dependencies:\n- {name: one, version: 1.x.x, condition: one.enabled}\n"+
			"- {name: two, version: 1.x.x, alias: deux}\n",
		"charts/one/Chart.yaml", sub("one"), "charts/one/templates/a.yaml", configMap+"one\n",
		"charts/one/crds/crd.yaml", "{kind: CustomResourceDefinition, apiVersion: apiextensions.k8s.io/v1, metadata: {name: ones}}",
		"charts/two/Chart.yaml", sub("two"), "charts/two/values.yaml", "size: 1\n",
		"charts/two/templates/a.yaml", configMap+"two-{{ .Values.size }}-{{ .Values.global.x }}-{{ hasKey .Values \"kkp\" }}\n",
	)
	values := map[string]any{"deux": map[string]any{"size": int64(2)}, "global": map[string]any{"x": "g"}}
	got := names(mustRender(t, content, values))
	if diff := cmp.Diff([]string{"CustomResourceDefinition/ones", "ConfigMap/two-2-g-false", "ConfigMap/one"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	values["one"] = map[string]any{"enabled": false}
	got = names(mustRender(t, content, values))
	if diff := cmp.Diff([]string{"ConfigMap/two-2-g-false"}, got); diff != "" {
		t.Errorf("with one off (-want +got):\n%s", diff)
	}

	for path := range content {
		if strings.HasPrefix(path, "charts/two") {
			delete(content, path)
		}
	}
	var missing *render.DependenciesMissingError
	if _, err := renderChart(content, nil); !errors.As(err, &missing) || !cmp.Equal(missing.Missing, []string{"two"}) {
		t.Errorf("got %v, want DependenciesMissingError for two", err)
	}
	content["charts/two-1.0.0.tgz"] = &fstest.MapFile{Data: archive(t, "two", map[string]string{
		"Chart.yaml": sub("two"), "templates/a.yaml": configMap + "packed\n",
	})}
	got = names(mustRender(t, content, values))
	if diff := cmp.Diff([]string{"ConfigMap/packed"}, got); diff != "" {
		t.Errorf("from an archive (-want +got):\n%s", diff)
	}
}

func archive(t *testing.T, folder string, files map[string]string) []byte {
	t.Helper()
	var packed bytes.Buffer
	zipper := gzip.NewWriter(&packed)
	writer := tar.NewWriter(zipper)
	for name, text := range files {
		if err := writer.WriteHeader(&tar.Header{Name: folder + "/" + name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := writer.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(writer.Close(), zipper.Close()); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

func TestRefusedCharts(t *testing.T) {
	deep := strings.Repeat("[", 300) + strings.Repeat("]", 300)
	for _, test := range []struct {
		why     string
		content fstest.MapFS
		want    string
	}{
		{"no chart", fstest.MapFS{}, "the chart can't be loaded: Chart.yaml file is missing: check that the source's path is the folder of the chart, or set template.method to go-template"},
		{"a library", folder("Chart.yaml", chartYAML+"type: library\n"), `chart "demo" has type "library": only applications can be installed`},
		{"another Kubernetes",
			folder("Chart.yaml", chartYAML+"kubeVersion: '>= 1.99'\n"), `chart "demo" needs Kubernetes >= 1.99, the cluster has v1.36.3`},
		{"a template that doesn't parse", folder("templates/a.yaml", "\n{{ if }}\n"), "demo/templates/a.yaml:2: missing value for if"},
		{"a template that fails", folder("templates/a.yaml", "\n\n{{ fail \"no way\" }}\n"), "demo/templates/a.yaml:3: no way"},
		{"a required value",
			folder("templates/a.yaml", "{{ required \"size is needed\" .Values.size }}"), "demo/templates/a.yaml:1: size is needed"},
		{"a function that fails", folder("templates/a.yaml", "{{ index .Values \"a\" \"b\" \"c\" }}"),
			`demo/templates/a.yaml:1: executing "demo/templates/a.yaml" at <index .Values "a" "b" "c">: error calling index: index of nil pointer`},
		{"YAML that is none", folder("templates/a.yaml", "a: b: c\n"),
			"demo/templates/a.yaml: error converting YAML to JSON: yaml: mapping values are not allowed in this context"},
		{"an object without a name", folder("templates/a.yaml", "kind: ConfigMap\napiVersion: v1\n"),
			"demo/templates/a.yaml: the rendered manifest has no metadata.name"},
		{"a CRD that is none", folder("crds/a.yaml", "---\n\nhello"), "demo/crds/a.yaml:3: the rendered manifest is not an object"},
		{"deep values", folder("values.yaml", "a: "+deep), "values.yaml:1: is nested deeper than 256"},
		{"values that grow", folder("values.yaml", "a: &a "+strings.Repeat("x", 1<<20)+"\nb: [*a,*a,*a,*a,*a,*a]\n"),
			"values.yaml:2: has more than 5242880 bytes with its aliases expanded"},
		{"a large file", folder("files/a", strings.Repeat("x", 6<<20)),
			`the add-on is too large: at most 5242880 bytes in chart file "files/a" are allowed`},
	} {
		t.Run(test.why, func(t *testing.T) {
			_, err := renderChart(test.content, nil)
			if err == nil {
				t.Fatal("the chart is taken")
			}
			if diff := cmp.Diff(test.want, err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	var none *render.NoManifestsError
	if _, err := renderChart(folder("templates/a.yaml", "# nothing\n"), nil); !errors.As(err, &none) {
		t.Errorf("got %v, want NoManifestsError", err)
	}
}

func TestHelmIgnore(t *testing.T) {
	content := folder(".helmignore", "*.bak\nold/\n", "templates/a.yaml", configMap+"a\n", "templates/b.yaml.bak", "{{ if }}",
		"templates/old/c.yaml", "{{ if }}", "templates/.hidden.yaml", "{{ if }}")
	if diff := cmp.Diff([]string{"ConfigMap/a"}, names(mustRender(t, content, nil))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNullEntriesOfChartsEndNothing (V05): Null entries in a chart are errors or nothing, never a panic.
func TestNullEntriesOfChartsEndNothing(t *testing.T) {
	for why, text := range map[string]string{
		"null":                "null",
		"nothing":             "",
		"a null dependency":   chartYAML + "dependencies: [null]\n",
		"a null maintainer":   chartYAML + "maintainers: [null]\n",
		"a null name":         "apiVersion: v2\nname: null\nversion: 1.0.0\n",
		"a list":              "[null]",
		"an alias of a loop":  "a: &a [*a]",
		"a name of two dots":  "apiVersion: v2\nname: ..\nversion: 1.0.0\n",
		"a name with a slash": "apiVersion: v2\nname: a/b\nversion: 1.0.0\n",
	} {
		t.Run(why, func(t *testing.T) {
			if result, err := renderChart(folder("Chart.yaml", text, "templates/a.yaml", configMap+"a\n"), nil); err == nil {
				t.Errorf("taken as %q", result.Chart.Name)
			}
		})
	}
	importing := "dependencies:\n- {name: one, version: 1.x.x, import-values: [null, {child: null, parent: null}]}\n"
	content := folder("Chart.yaml", chartYAML+importing,
		"Chart.lock", "null", "values.yaml", "one: null", "templates/a.yaml", configMap+"a\n",
		"charts/one/Chart.yaml", "apiVersion: v2\nname: one\nversion: 1.0.0\nsources: [null]\nkeywords: [null]\n")
	if _, err := renderChart(content, nil); err == nil {
		t.Error("a null where values of a dependency belong is taken")
	}
	content["values.yaml"] = &fstest.MapFile{Data: []byte("null")}
	mustRender(t, content, nil)
}

// TestChartsSeeNoNetworkAndNoEnvironment (V09, AC03): Templates of a chart find no host and no object, and see no
// environment.
func TestChartsSeeNoNetworkAndNoEnvironment(t *testing.T) {
	t.Setenv("TRELLIS_TEST_SECRET", "hunter2")
	content := folder("templates/a.yaml", configMap+"a\ndata:\n"+
		"  host: \"{{ getHostByName .Values.password }}\"\n  lookup: {{ lookup \"v1\" \"Secret\" \"\" \"\" | toJson | quote }}\n")
	result := mustRender(t, content, map[string]any{"password": "hunter2.example.com"})
	if diff := cmp.Diff(map[string]any{"host": "", "lookup": "{}"}, data(t, result)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, function := range []string{"env", "expandenv"} {
		_, err := renderChart(folder("templates/a.yaml", `{{ `+function+` "TRELLIS_TEST_SECRET" }}`), nil)
		var refused *render.TemplateError
		if !errors.As(err, &refused) || !strings.Contains(refused.Problem, "not defined") {
			t.Errorf("%s: got %v, want an unknown function", function, err)
		}
	}
}

// TestPluginsAreNotLookedFor (V13): Helm's plugins are not searched for.
func TestPluginsAreNotLookedFor(t *testing.T) {
	plugins := t.TempDir()
	trap := filepath.Join(plugins, "trap")
	if err := os.MkdirAll(trap, 0o755); err != nil {
		t.Fatal(err)
	}
	touched := filepath.Join(plugins, "touched")
	manifest := "name: trap\nversion: 1.0.0\ndownloaders: [{command: touch.sh, protocols: [trap, https, file]}]\n"
	script := "#!/bin/sh\ntouch " + touched + "\n"
	if err := errors.Join(os.WriteFile(filepath.Join(trap, "plugin.yaml"), []byte(manifest), 0o644),
		os.WriteFile(filepath.Join(trap, "touch.sh"), []byte(script), 0o755)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HELM_PLUGINS", plugins)
	_, err := renderChart(folder("Chart.yaml", chartYAML+"dependencies:\n- {name: one, version: 1.x.x, repository: 'trap://x'}\n"), nil)
	if _, ok := errors.AsType[*render.DependenciesMissingError](err); !ok {
		t.Errorf("got %v, want DependenciesMissingError", err)
	}
	if _, err := os.Stat(touched); !errors.Is(err, os.ErrNotExist) {
		t.Error("a plugin was run")
	}
}

// TestSchemaReadsNothingFromElsewhere (V14): A schema of values that names URLs or files reads none of them.
func TestSchemaReadsNothingFromElsewhere(t *testing.T) {
	var asked atomic.Int64
	canary := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = writer.Write([]byte("true"))
	}))
	defer canary.Close()
	file := filepath.Join(t.TempDir(), "token.json")
	if err := os.WriteFile(file, []byte(`{"const": "hunter2"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{canary.URL + "/a.json", "file://" + file, "urn:example:a", "other.json", "trap:x"} {
		for _, schema := range []string{
			`{"$ref": "` + target + `"}`, `{"$schema": "` + target + `"}`, `{"properties": {"a": {"$ref": "` + target + `#/a"}}}`,
		} {
			_, err := renderChart(folder("values.schema.json", schema, "templates/a.yaml", configMap+"a\n"), map[string]any{"a": int64(1)})
			var refused *render.ChartError
			if !errors.As(err, &refused) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: got %v, want ChartError", schema, err)
			}
		}
	}
	if asked.Load() != 0 {
		t.Errorf("the canary saw %d requests", asked.Load())
	}
}

// TestSchema (V02): A schema of a hundred thousand levels is refused.
func TestSchema(t *testing.T) {
	ofAllKinds := `{"properties": {"size": {"minimum": 2.5, "multipleOf": 5}, "name": {"enum": ["abc", 7]}, "short": {"minLength": 3}, "list": {"maxItems": 1}}}`
	closed := `{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
		"additionalProperties": false, "required": ["size"],
		"properties": {"size": {"type": "integer", "maximum": 5}, "name": {"$ref": "#/definitions/name"}},
		"definitions": {"name": {"type": "string", "pattern": "^[a-z]+$"}}}`
	open := strings.Replace(closed, `"additionalProperties": false, `, "", 1)
	template := configMap + "a\ndata: {kkp: \"{{ hasKey .Values \"kkp\" }}\"}\n"
	for _, test := range []struct {
		why, schema string
		values      map[string]any
		kkp, want   string
	}{
		{"an open schema", open, map[string]any{"size": int64(1), "more": true}, "true", ""},
		{"a closed schema does without the cluster's data", closed, map[string]any{"size": int64(1)}, "false", ""},
		{"a closed schema, no size", closed, nil, "", `values must have ["size"]`},
		{"a closed schema, one key too many", closed, map[string]any{"size": int64(1), "more": "hunter2"}, "", `values must not have ["more"]`},
		{"a wrong type", open, map[string]any{"size": "hunter2"}, "", "values.size must be integer"},
		{"too large", open, map[string]any{"size": int64(1234567)}, "", `values.size must be at most 5`},
		{
			"bounds of all kinds", ofAllKinds, map[string]any{"size": int64(2), "name": "x", "short": "x", "list": []any{"hunter2", "hunter2"}}, "",
			`values.list must have at most 1 items; values.name must be one of "abc", 7; values.short must have at least 3 characters; ` +
				`values.size must be a multiple of 5; values.size must be at least 2.5`,
		},
		{"another pattern", open, map[string]any{"size": int64(1), "name": "HUNTER2"}, "", `values.name must match "^[a-z]+$"`},
	} {
		t.Run(test.why, func(t *testing.T) {
			result, err := renderChart(folder("values.schema.json", test.schema, "templates/a.yaml", template), test.values)
			if test.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if got := data(t, result)["kkp"]; got != test.kkp {
					t.Errorf("has kkp: %v, want %v", got, test.kkp)
				}
				return
			}
			var refused *render.ChartError
			if !errors.As(err, &refused) {
				t.Fatalf("got %v, want ChartError", err)
			}
			if diff := cmp.Diff("does not accept the values: "+test.want+": correct what spec.values, or another layer of values, sets there", refused.Problem); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for why, schema := range map[string]string{
		"100,000 levels": strings.Repeat(`{"not":`, 100_000) + "true" + strings.Repeat("}", 100_000),
		"5,000 levels":   strings.Repeat(`{"not":`, 5_000) + "true" + strings.Repeat("}", 5_000),
		"no JSON":        "{", "no schema": `{"type": 3}`, "a loop": `{"$ref": "#"}`,
	} {
		t.Run(why, func(t *testing.T) {
			var refused *render.ChartError
			if _, err := renderChart(folder("values.schema.json", schema, "templates/a.yaml", template), nil); !errors.As(err, &refused) {
				t.Errorf("got %v, want ChartError", err)
			}
		})
	}
}

// TestErrorsAndLogsOfChartsHoldNoValue (AC11): Errors and logs of a chart's rendering have no value.
func TestErrorsAndLogsOfChartsHoldNoValue(t *testing.T) {
	values := map[string]any{
		"password": "hunter2\nsecond-line", "table": map[string]any{"a": "hunter2-too"}, "list": []any{"third-secret"},
	}
	logged := bytes.Buffer{}
	defer log.SetOutput(log.Writer())
	log.SetOutput(&logged)
	chartValues := "table: no table\npassword: {x: 1}\nlist: {x: 1}\n"
	merged := folder("templates/a.yaml", configMap+"a\n", "values.yaml", chartValues)
	mustRender(t, merged, map[string]any{"table": map[string]any{"a": "hunter2-too"}, "password": "hunter2"})
	log.Print("afterwards")
	if got := logged.String(); !strings.Contains(got, "afterwards") || strings.Count(got, "\n") != 1 {
		t.Errorf("logged %q", got)
	}
	for _, template := range []string{
		`{{ fail .Values.password }}`, `{{ required .Values.password nil }}`, `{{ tpl (printf "{{ if %s" .Values.password) . }}`,
		`{{ fail (b64enc .Values.password) }}`, `{{ index .Values.list (first .Values.list) }}`, "a: b: {{ .Values.table.a }}",
		`{{ fail (toJson .Values) }}`, "a: \"{{ .Values.table.a }}", "{{ tpl `{{ fail .Values.table.a }}` . }}",
	} {
		_, err := renderChart(folder("templates/a.yaml", template, "values.yaml", chartValues), values)
		if err == nil {
			t.Errorf("%s: rendered", template)
			continue
		}
		for _, secret := range []string{"hunter2", "second-line", "third-secret", "aHVudGVy"} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the error %q holds a value", template, err)
			}
		}
	}
}

// TestLongMessagesOfChartsAreCut (AC12): A chart's failure message is cut.
func TestLongMessagesOfChartsAreCut(t *testing.T) {
	_, err := renderChart(folder("templates/a.yaml", `{{ fail (repeat 50000 "long\n") }}`), nil)
	if err == nil || len(err.Error()) > 600 || strings.Contains(err.Error(), "\n") {
		t.Errorf("got an error of %d bytes", len(err.Error()))
	}
}

// TestAValueOfTheWrongTypeIsNamed fails when the message about a value of the wrong type does not name that value,
// where the template names it, or does not say how to correct it; when it names other values; when Helm's message is
// missing, or contains a value; or when a text from values counts as a template.
func TestAValueOfTheWrongTypeIsNamed(t *testing.T) {
	const todo = ": correct what spec.values, or another layer of values, sets there; Helm's message: executing "
	helper := "{{- define \"demo.replicas\" -}}\n{{ gt .Values.settings.replicas 1 }}\n{{- end }}"
	sub := "apiVersion: v2\nname: sub\nversion: 1.0.0\n"
	for _, test := range []struct {
		why     string
		content []string
		values  map[string]any
		want    []string
	}{
		{"a comparison", []string{"templates/a.yaml", "# first\n{{ if gt .Values.replicaCount 1 }}a{{ end }}"},
			map[string]any{"replicaCount": "hunter2"}, []string{"demo/templates/a.yaml:2: ", "at replicaCount" + todo, "incompatible types for comparison"}},
		{"a long path, beside another value", []string{"templates/a.yaml", "{{ if and .Values.on (gt .Values.controller.autoscaling.replicas 1) }}a{{ end }}"},
			map[string]any{"on": true, "controller": map[string]any{"autoscaling": map[string]any{"replicas": "hunter2"}}},
			[]string{"at controller.autoscaling.replicas" + todo}},
		{"in a helper", []string{"templates/_h.tpl", helper, "templates/a.yaml", "{{ include \"demo.replicas\" . }}"},
			map[string]any{"settings": map[string]any{"replicas": "hunter2"}}, []string{"at settings.replicas" + todo}},
		{"from a loop", []string{"templates/a.yaml", "{{ range .Values.hosts }}{{ . }}{{ end }}"},
			map[string]any{"hosts": "hunter2"}, []string{"at hosts" + todo, "range can't iterate over"}},
		{"what is piped", []string{"templates/a.yaml", "{{ if .Values.items | lower | lt 1 }}a{{ end }}"},
			map[string]any{"items": "hunter2"}, []string{"at items" + todo}},
		{"a value that is a text, not a map", []string{"templates/a.yaml", "{{ $.Values.image.tag }}"},
			map[string]any{"image": "hunter2"}, []string{"at image.tag" + todo}},
		{"in a dependency", []string{"Chart.yaml", chartYAML + "dependencies: [{name: sub, version: 1.x.x}]\n", "charts/sub/Chart.yaml", sub,
			"charts/sub/templates/a.yaml", "{{ if gt .Values.port 1 }}a{{ end }}"},
			map[string]any{"sub": map[string]any{"port": "hunter2"}}, []string{"at sub.port" + todo}},
		{"by a schema of a dependency", []string{"Chart.yaml", chartYAML + "dependencies: [{name: sub, version: 1.x.x}]\n", "charts/sub/Chart.yaml", sub,
			"charts/sub/values.schema.json", `{"properties": {"port": {"type": "integer"}}}`},
			map[string]any{"sub": map[string]any{"port": "hunter2"}}, []string{"values.sub.port must be integer: correct what spec.values"}},
		{"several", []string{"templates/a.yaml", "{{ if eq .Values.a .Values.b .Values.c .Values.d 1 }}a{{ end }}"},
			map[string]any{"a": int64(2), "b": "hunter2"}, []string{"at a, b, c and 1 more" + todo}},
	} {
		_, err := renderChart(folder(test.content...), test.values)
		if err == nil {
			t.Errorf("%s: it is rendered", test.why)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q does not say %q", test.why, err, want)
			}
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: it has a value: %q", test.why, err)
		}
	}
	for why, template := range map[string]string{
		"a text from the values": "{{ tpl .Values.text . }}", "what names no value": "{{ gt 1 .Release.Name }}", "a message of the chart": "{{ fail .Values.name }}",
	} {
		_, err := renderChart(folder("templates/a.yaml", template), map[string]any{"text": "{{ gt .Values.text 1 }}", "name": "hunter2"})
		if err == nil || strings.Contains(err.Error(), "correct what") {
			t.Errorf("%s: %v", why, err)
		}
	}
}

// TestCreatedChart: A chart from `helm create` is rendered without an error about its test hook, and twice the same.
func TestCreatedChart(t *testing.T) {
	made, err := chartutil.Create("created", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	request := input(nil, map[string]any{"replicaCount": int64(2)})
	request.Content = os.DirFS(made)
	first, err := chart.New().Render(context.Background(), request)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"ServiceAccount/my-release-created", "Service/my-release-created", "Deployment/my-release-created"}
	if diff := cmp.Diff(want, names(first)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	second, err := chart.New().Render(context.Background(), request)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the second rendering differs:\n%s", diff)
	}
}

// TestWordsOfTheSchemaAreShown: The allowed values of a schema belong to the chart, and are shown even if a value is
// the same word. The test fails when one is hidden as a value.
func TestWordsOfTheSchemaAreShown(t *testing.T) {
	for _, test := range []struct {
		why, schema, want string
		values            map[string]any
	}{
		{"an option", `{"properties": {"policy": {"enum": ["IfNotPresent", "Always"]}}}`, `values.policy must be one of "IfNotPresent", "Always"`,
			map[string]any{"policyy": "Always", "policy": "hunter2-sometimes"}},
		{"a constant", `{"properties": {"kind": {"const": "Always"}}}`, `values.kind must be "Always"`, map[string]any{"other": "Always", "kind": "hunter2-x"}},
		{"a pattern", `{"properties": {"name": {"pattern": "^Always$"}}}`, `values.name must match "^Always$"`, map[string]any{"other": "Always", "name": "hunter2"}},
		{"a key", `{"properties": {"image": {"properties": {"Always": {"type": "integer"}}}}}`, `values.image.Always must be integer`,
			map[string]any{"other": "Always", "image": map[string]any{"Always": "hunter2"}}},
		{"a bound", `{"properties": {"size": {"maximum": 1234567}}}`, `values.size must be at most 1234567`, map[string]any{"other": int64(1234567), "size": int64(7654321)}},
		{"a key that is missing", `{"required": ["password"]}`, `values must have ["password"]`, map[string]any{"other": "password"}},
	} {
		_, err := renderChart(folder("values.schema.json", test.schema, "templates/a.yaml", configMap+"a\n"), test.values)
		var refused *render.ChartError
		if !errors.As(err, &refused) {
			t.Fatalf("%s: got %v", test.why, err)
		}
		if diff := cmp.Diff("does not accept the values: "+test.want+": correct what spec.values, or another layer of values, sets there", refused.Problem); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.why, diff)
		}
	}
}
