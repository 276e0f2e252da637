package gotemplate_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/gotemplate"
	"github.com/trellis-addons/trellis/pkg/values"
)

func renderValues(t *testing.T, template string) (map[string]any, error) {
	t.Helper()
	return gotemplate.New().RenderValues(context.Background(), render.ValuesInput{
		Addon: "demo", Template: template, Data: goldenData(t),
	})
}

func TestRenderValues(t *testing.T) {
	got, err := renderValues(t, `
{{- define "label" }}{{ .Cluster.Name | upper | quote }}{{ end -}}
name: {{ template "label" . }}
replicas: {{ if .Cluster.Features.Has "externalCloudProvider" }}2{{ else }}1{{ end }}
new: {{ semverCompare .Cluster.Version ">= 1.36" }}
ratio: 0.5
byFlag: {{ .Variables.flag }}
pods: [{{ join .Cluster.Network.PodCIDRBlocks ", " }}]
absent: {{ .Variables.none | default "here" }}
gone: null
`)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"name": "47S2DDLFGJ", "replicas": int64(2), "new": true, "ratio": 0.5, "byFlag": "f",
		"pods": []any{"172.25.0.0/16", "fd01::/48"}, "absent": "here", "gone": nil,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, err := renderValues(t, "{{/* nothing */}}"); err != nil || len(got) != 0 {
		t.Errorf("an empty template gives %v, %v", got, err)
	}
}

// TestValuesTemplatesSeeClusterAPI fails when a valuesTemplate does not see .CAPI beside KKP's data, when .CAPI is
// not empty for clusters of KKP, or when manifests see it.
func TestValuesTemplatesSeeClusterAPI(t *testing.T) {
	const template = "a: 1\n{{ with .CAPI }}of: {{ .Cluster.metadata.name }} {{ $.Cluster.Name }} {{ $.Cluster.Network.ConfigHash | len }}{{ end }}"
	input := render.ValuesInput{Addon: "demo", Template: template, Data: goldenData(t)}
	for want, seen := range map[any]map[string]any{
		nil: nil, "one 47s2ddlfgj 40": {"Cluster": map[string]any{"metadata": map[string]any{"name": "one"}}},
	} {
		input.CAPI = seen
		if got, err := gotemplate.New().RenderValues(t.Context(), input); err != nil || got["of"] != want || got["a"] != int64(1) {
			t.Errorf("%v: got %v, %v", want, got, err)
		}
	}
	input.Template = `{{ define "proxy" }}{{ range list 1 }}of: {{ $.Cluster.metadata.name }}{{ end }}{{ end }}{{ with .CAPI }}{{ template "proxy" . }}{{ end }}`
	input.CAPI = map[string]any{"Cluster": map[string]any{"metadata": map[string]any{"name": "one"}}}
	if got, err := gotemplate.New().RenderValues(t.Context(), input); err != nil || got["of"] != "one" {
		t.Errorf("one that names the root: got %v, %v", got, err)
	}
	manifest := fstest.MapFS{"a.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n{{ with .CAPI }}{{ end }}")}}
	if _, err := gotemplate.New().Render(t.Context(), render.Input{Addon: "demo", Content: manifest, Data: goldenData(t)}); err == nil {
		t.Error("manifests see it")
	}
}

// TestValuesTemplatesTakeArgumentsInEitherOrder: A HelmChartProxy's template uses sprig's functions, and a KKP
// add-on's uses KKP's, two of which have the reverse order of arguments. The test fails when a template of values
// accepts only one order, when KKP's does not count where both are possible, or when manifests accept sprig's.
func TestValuesTemplatesTakeArgumentsInEitherOrder(t *testing.T) {
	for template, want := range map[string]any{
		`{{ list "a" 1 | join "-" }}`:              "a-1",
		`{{ join (list "a" 1) "-" }}`:              "a-1",
		`{{ "v1.36.3" | semverCompare ">=1.36" }}`: true,
		`{{ "v1.35.3" | semverCompare ">=1.36" }}`: false,
		`{{ semverCompare "v1.36.3" ">=1.36" }}`:   true,
		`{{ semverCompare "1.36" "1.36.3" }}`:      false,
		`{{ semverCompare "1.36.3" "1.36" }}`:      true,
	} {
		if got, err := renderValues(t, "of: "+template); err != nil || got["of"] != want {
			t.Errorf("%s gives %v, %v, want %v", template, got["of"], err, want)
		}
	}
	for _, wrong := range []string{`{{ join 1 2 }}`, `{{ join "-" 2 }}`} {
		if got, err := renderValues(t, "of: "+wrong); err == nil {
			t.Errorf("%s gives %v", wrong, got)
		}
	}
	manifest := fstest.MapFS{"a.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ list 1 | join \"-\" }}'}\n")}}
	if _, err := gotemplate.New().Render(t.Context(), render.Input{Addon: "demo", Content: manifest, Data: goldenData(t)}); err == nil {
		t.Error("manifests take sprig's order")
	}
}

// TestValuesTemplatesBeyondLimitsAreRefused (AC06): The result of a template of values has the limits of values. The
// test fails when the limits are not those of valuesTemplate: 256 KiB, depth 32, one document, strictly decoded.
func TestValuesTemplatesBeyondLimitsAreRefused(t *testing.T) {
	for _, test := range []struct {
		why, template string
		line          int
		problem       string
	}{
		{"a list", "- 1", 1, "the rendered values: is not a map of keys to values"},
		{"a key twice, with its line", "a: 1\n{{ if true }}\nb: 2\na: 3\n{{ end }}", 4, `the rendered values: has key "a" twice`},
		{"two documents", "a: 1\n---\nb: 1\n", 2, "the rendered values: contains more than one document"},
		{"too deep", "a: " + strings.Repeat("[", values.MaxDepth) + strings.Repeat("]", values.MaxDepth), 1,
			"the rendered values: is nested deeper than 32"},
		{"an alias bomb", aliasBomb(), -1, "the rendered values: has more than 262144 bytes with its aliases expanded"},
		{"no number", "a: .nan", 1, "the rendered values: has a number that is not finite"},
		{"a missing key", "a: {{ .Variables.none }}", 0, "has no value for a: give the value that the template prints there a default"},
		{"what it says itself", `{{ fail "no" }}`, 1, `executing "valuesTemplate" at <fail "no">: error calling fail: no`},
		{"a function that reads the environment", `{{ env "HOME" }}`, 1, `function "env" not defined: method go-template has the functions of sprig and KKP`},
		{"Helm's required", `{{ required "a" .Variables.a }}`, 1,
			`function "required" not defined: write {{ if not .Variables.name }}{{ fail "set name" }}{{ end }}`},
		{"a misspelt root", `{{ .Variable.a }}`, 1, `executing "valuesTemplate" at <.Variable.a>: can't evaluate field Variable of the template data, ` +
			`which has .Variables, .Cluster and others`},
	} {
		_, err := renderValues(t, test.template)
		refused, ok := errors.AsType[*render.TemplateError](err)
		if !ok {
			t.Errorf("%s: got %v, want TemplateError", test.why, err)
			continue
		}
		if refused.File != render.ValuesTemplateFile || refused.Problem != test.problem || test.line >= 0 && refused.Line != test.line {
			t.Errorf("%s: got %v", test.why, err)
		}
	}
	_, err := renderValues(t, `{{ range until 100000 }}{{ repeat 1000 "a" }}{{ end }}`)
	if limit, ok := errors.AsType[*render.LimitError](err); !ok || limit.Max != values.MaxBytes {
		t.Errorf("a large output: got %v, want LimitError", err)
	}
}

func aliasBomb() string {
	text := "a0: &a0 [x, x]\n"
	for i := range 20 {
		before, next := string(rune('a'+i)), string(rune('b'+i))
		text += next + "0: &" + next + "0 [*" + before + "0, *" + before + "0]\n"
	}
	return text
}

// TestRenderValuesEnds fails when a template that only counts is not ended.
func TestRenderValuesEnds(t *testing.T) {
	nested := strings.Repeat("{{ range until 10000 }}", 4) + strings.Repeat("{{ end }}", 4)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := gotemplate.New().RenderValues(ctx, render.ValuesInput{Template: nested})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
}
