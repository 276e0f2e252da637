package chart_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/trellis-addons/trellis/test/binaries"
)

// templated is the output of the helm program for a chart.
func templated(t *testing.T, content fstest.MapFS, flags ...string) string {
	t.Helper()
	cache, err := binaries.Cache()
	if err != nil {
		t.Fatal(err)
	}
	program, err := binaries.Find(cache, "helm", "")
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "demo")
	if err := os.CopyFS(folder, content); err != nil {
		t.Fatal(err)
	}
	arguments := []string{"template", "my-release", folder, "--namespace", "my-namespace", "--kube-version", "v1.36.3"}
	command := exec.CommandContext(t.Context(), program, append(arguments, flags...)...)
	command.Env = []string{"HOME=" + t.TempDir()}
	var problem bytes.Buffer
	command.Stderr = &problem
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, problem.String())
	}
	return string(output)
}

// decoded are the objects of a text as Helm's client reads them, by kind and name.
func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	found := map[string]any{}
	for decoder := yaml.NewYAMLToJSONDecoder(bytes.NewBufferString(text)); ; {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(object.Object) > 0 {
			found[object.GetKind()+"/"+object.GetName()] = object.Object
		}
	}
}

// ends are charts whose block scalars end a document, a template or a file.
func ends() fstest.MapFS {
	data := func(name, text string) string { return configMap + name + "\ndata:\n  text: " + text }
	return folder(
		"templates/clip.yaml", data("clip", "|\n    a\n    b\n"),
		"templates/open.yaml", data("open", "|\n    a\n    b"),
		"templates/strip.yaml", data("strip", "|-\n    a\n    b\n"),
		"templates/keep.yaml", data("keep", "|+\n    a\n    b\n\n\n"),
		"templates/fold.yaml", data("fold", ">\n    a\n    b\n"),
		"templates/blank.yaml", data("blank", "|\n    a\n\n    \n"),
		"templates/plain.yaml", data("plain", "a\n"),
		"templates/comment.yaml", data("comment", "|\n    a\n# the end\n"),
		"templates/several.yaml", data("one", "|\n    a\n")+"---\n"+data("two", "|\n    a\n\n")+"--- # three\n"+data("three", "|\n    a"),
		"templates/windows.yaml", data("windows", "|\r\n    a\r\n    b\r\n"),
		"templates/file.yaml", data("file", `|
{{ .Files.Get "text.txt" | indent 4 }}`), "text.txt", "a\nb\n",
		"templates/nindent.yaml", data("nindent", `|-{{ "a\nb\n" | nindent 4 }}`),
		"templates/number.yaml", configMap+"number\n  annotations: {a: \"1e3\", b: \"0x1F\", c: \"yes\"}\ndata: {float: \"1.0\"}\n",
		"templates/hook.yaml", configMap+"hook\n  annotations: {helm.sh/hook: pre-install}\ndata:\n  text: |\n    a\n",
		"crds/a.yaml", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: as.example.com\nspec: |\n  a",
	)
}

// TestBytesAsHelm fails when a byte of a manifest or an object differs from the helm program's: earlier, a block
// scalar lost its newline at the end of a document.
func TestBytesAsHelm(t *testing.T) {
	content := ends()
	result := mustRender(t, content, nil)
	if diff := cmp.Diff(templated(t, content, "--no-hooks"), result.Chart.Manifest); diff != "" {
		t.Errorf("the manifest (-want +got):\n%s", diff)
	}
	have := map[string]any{}
	for _, object := range result.Objects {
		have[object.GetKind()+"/"+object.GetName()] = object.Object
	}
	for _, hook := range result.Chart.Hooks {
		have[hook.Object.GetKind()+"/"+hook.Object.GetName()] = hook.Object.Object
	}
	if diff := cmp.Diff(decoded(t, templated(t, content, "--include-crds")), have); diff != "" {
		t.Errorf("the objects (-want +got):\n%s", diff)
	}
}

// TestDependenciesAsHelm fails when a dependency that the values disable leaves CRDs, or when a null that is imported
// from a dependency is lost: Helm has neither.
func TestDependenciesAsHelm(t *testing.T) {
	crd := func(name string) string {
		return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: " + name + ".example.com\n"
	}
	sub := func(name string) string { return "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n" }
	content := folder(
		"Chart.yaml", chartYAML+"dependencies:\n- {name: one, version: 1.x.x, condition: one.enabled, import-values: [defaults]}\n"+
			"- {name: two, version: 1.x.x, tags: [extra]}\n",
		"values.yaml", "own: {kept: null, set: 1}\n",
		"templates/a.yaml", configMap+"a\ndata:\n  values: {{ .Values | toJson | quote }}\n",
		"crds/a.yaml", crd("as"),
		"charts/one/Chart.yaml", sub("one"), "charts/one/crds/one.yaml", crd("ones"),
		"charts/one/values.yaml", "exports: {defaults: {imported: {kept: null, set: 1}}}\n",
		"charts/one/templates/a.yaml", configMap+"one\n",
		"charts/two/Chart.yaml", sub("two"), "charts/two/crds/two.yaml", crd("twos"),
		"charts/two/templates/a.yaml", configMap+"two-{{ .Capabilities.APIVersions.Has \"example.com/v1\" }}\n",
	)
	for _, test := range []struct{ why, values string }{
		{"all are on", "{}"},
		{"one is off by its condition", "one: {enabled: false}"},
		{"one is off by its tag", "tags: {extra: false}"},
		{"a null of the user's", "{own: {set: null}, imported: {set: null}}"},
	} {
		t.Run(test.why, func(t *testing.T) {
			values := map[string]any{}
			if err := yaml.Unmarshal([]byte(test.values), &values); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "values.yaml")
			if err := os.WriteFile(file, []byte(test.values), 0o600); err != nil {
				t.Fatal(err)
			}
			have := map[string]any{}
			for _, object := range mustRender(t, content, values).Objects {
				have[object.GetKind()+"/"+object.GetName()] = object.Object
			}
			if diff := cmp.Diff(decoded(t, templated(t, content, "--include-crds", "--values", file)), have); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

// TestValuesAsHelm: Charts that print their values, or pass them to another template, print the same as with the helm
// program. The test fails if each chart's values have .Values.kkp.
func TestValuesAsHelm(t *testing.T) {
	sub := "apiVersion: v2\nname: one\nversion: 1.0.0\n"
	for why, files := range map[string][]string{
		"as YAML":                  {"templates/a.yaml", configMap + "a\ndata: {values: {{ .Values | toYaml | quote }}}\n"},
		"all that a template sees": {"templates/a.yaml", configMap + "a\ndata: {values: {{ pick . \"Values\" \"Release\" | toJson | quote }}}\n"},
		"by a helper": {"templates/_h.tpl", `{{ define "h" }}{{ toJson .Values }}{{ end }}`,
			"templates/a.yaml", configMap + "a\n  annotations: {sum: {{ include \"h\" . | sha256sum }}}\n"},
		"by tpl":          {"templates/a.yaml", configMap + "a\ndata: {values: {{ tpl \"{{ toJson .Values }}\" . | quote }}}\n"},
		"their keys":      {"templates/a.yaml", configMap + "a\ndata: {values: {{ keys .Values | sortAlpha | join \",\" }}}\n"},
		"in a dependency": {"charts/one/Chart.yaml", sub, "charts/one/templates/a.yaml", configMap + "a\ndata: {values: {{ .Values | toJson | quote }}}\n"},
		"beside words that are no names": {"README.md", "The kkp is not .Values.kkp here.\n", "notes.txt", "kkp",
			"templates/a.yaml", configMap + "kkp-system\n  labels: {app: kkp}\ndata: {values: {{ .Values | toJson | quote }}, to: {{ \"kkp-system\" }}} # kkp\n{{/* .Values.kkp */}}\n"},
	} {
		content := folder(append([]string{"values.yaml", "a: 1\nb: {c: kkp-system}\none: {d: 2}\n"}, files...)...)
		if diff := cmp.Diff(templated(t, content), mustRender(t, content, nil).Chart.Manifest); diff != "" {
			t.Errorf("%s (-want +got):\n%s", why, diff)
		}
	}
}

// TestChartsThatNameTheClustersDataHaveThem fails when a chart, or a text that it renders, names .Values.kkp and
// finds no data there.
func TestChartsThatNameTheClustersDataHaveThem(t *testing.T) {
	const named = "{{ .Values.kkp.Cluster.Name }}"
	sub := "apiVersion: v2\nname: one\nversion: 1.0.0\n"
	for template, files := range map[string][]string{
		named:                             nil,
		"{{ $.Values.kkp.Cluster.Name }}": nil,
		"{{ $v := .Values }}{{ $v.kkp.Cluster.Name }}":                                                        nil,
		"{{ with .Values }}{{ .kkp.Cluster.Name }}{{ end }}":                                                  nil,
		`{{ (index .Values "kkp").Cluster.Name }}`:                                                            nil,
		`{{ get .Values "kkp" | dig "Cluster" "Name" "" }}`:                                                   nil,
		`{{ $v := .Values }}{{ range splitList "." "kkp.Cluster.Name" }}{{ $v = get $v . }}{{ end }}{{ $v }}`: nil,
		`{{ include "h" . }}`:                                        {"templates/_h.tpl", `{{ define "h" }}` + named + `{{ end }}`},
		`{{ include "lib" . }}`:                                      {"charts/one/Chart.yaml", sub, "charts/one/templates/_l.tpl", `{{ define "lib" }}` + named + `{{ end }}`},
		`{{ tpl .Values.text . }}`:                                   {"values.yaml", "text: '" + named + "'\n"},
		`{{ tpl .Values.own . }}`:                                    nil,
		`{{ tpl (.Files.Get "file.txt") . }}`:                        {"file.txt", named},
		`{{ tpl "` + named + `" . }}`:                                nil,
		`{{ tpl (printf "{{ .Values.%s.Cluster.Name }}" "kkp") . }}`: nil,
	} {
		content := folder(append([]string{"templates/a.yaml", configMap + "a\ndata:\n  out: " + template + "\n"}, files...)...)
		result, err := renderChart(content, map[string]any{"own": named})
		if template != `{{ tpl .Values.own . }}` {
			result, err = renderChart(content, nil)
		}
		if err != nil {
			t.Errorf("%s: %v", template, err)
			continue
		}
		if got := data(t, result)["out"]; got != "47s2ddlfgj" {
			t.Errorf("%s: got %v", template, got)
		}
	}
}
