package rendering

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/chart"
	"github.com/trellis-addons/trellis/pkg/render/gotemplate"
)

const (
	manifests = v1.MethodGoTemplate
	named     = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
)

func versionOf(method v1.Method, change ...func(*v1.AddonVersion)) *v1.AddonVersion {
	made := &v1.AddonVersion{Version: "1.0.0", Template: &v1.Template{Method: method}}
	for _, one := range change {
		one(made)
	}
	return made
}

func field(required bool, value string) func(*v1.AddonVersion) {
	return func(version *v1.AddonVersion) {
		made := v1.FormField{DisplayName: "Host", InternalName: "host", Type: v1.FormText, Required: required}
		if value != "" {
			made.Default = &runtime.RawExtension{Raw: []byte(value)}
		}
		version.Template.FormSpec = append(version.Template.FormSpec, made)
	}
}

func valuesTemplate(text string) func(*v1.AddonVersion) {
	return func(version *v1.AddonVersion) { version.ValuesTemplate = text }
}

func fits(constraint v1.VersionRange) func(*v1.AddonVersion) {
	return func(version *v1.AddonVersion) { version.Constraints = &v1.Constraints{K8sVersion: constraint} }
}

// TestTrialsReportWhatNobodyCanFix fails when a mistake that fails every installation is not reported, or when one
// is reported that a user's values or a cluster's facts would avoid.
func TestTrialsReportWhatNobodyCanFix(t *testing.T) {
	const rendered, untried = "rendered", "untried"
	trial := &Trial{
		Methods: map[string]render.Renderer{string(v1.MethodGoTemplate): gotemplate.New(), string(v1.MethodHelm): chart.New()}, Values: gotemplate.New(),
	}
	secrets := func(version *v1.AddonVersion) { version.Template.ClusterSecrets = true }
	for _, test := range []struct {
		why     string
		version *v1.AddonVersion
		file    string
		text    string
		want    string // or a part of the message
	}{
		{"manifests", versionOf(manifests), "x.yaml", named, rendered},
		{"facts of the sample", versionOf(manifests), "x.yaml", named + "data: {a: '{{ .Cluster.Network.DNSResolverIP }}', b: '{{ .Cluster.Version }}'}", rendered},
		{"a default of the form", versionOf(manifests, field(true, `"h"`)), "x.yaml", named + "data: {h: '{{ .Variables.host }}'}", rendered},
		{"values of a template", versionOf(manifests, valuesTemplate("host: {{ .Cluster.Name }}")), "x.yaml", named + "data: {h: '{{ .Variables.host }}'}", rendered},
		{"a release that fits", versionOf(v1.MethodHelm, fits(">= 1.36")), "templates/x.yaml",
			`{{ if semverCompare "<1.36-0" .Capabilities.KubeVersion.Version }}{{ fail "old" }}{{ end }}` + named, rendered},
		{"kinds of every cluster", versionOf(v1.MethodHelm), "templates/x.yaml", `{{ if .Capabilities.APIVersions.Has "apps/v1/Deployment" }}` + named + "{{ end }}", rendered},

		{"syntax", versionOf(manifests), "x.yaml", "\n{{ if }}", "x.yaml:2: missing value for if"},
		{"an unknown function", versionOf(manifests), "x.yaml", "{{ toYam .Cluster }}", `x.yaml:1: function "toYam" not defined`},
		{"a field that nothing has", versionOf(manifests), "x.yaml", named + "data: {a: '{{ .Cluster.Nmae }}'}", "x.yaml:4: "},
		{"a field that nothing has, of values", versionOf(manifests, valuesTemplate("a: {{ .Cluster.Nmae }}")), "x.yaml", named, "valuesTemplate:1: "},
		{"syntax of a chart", versionOf(v1.MethodHelm), "templates/x.yaml", "\n{{ if }}", "web/templates/x.yaml:2: "},
		{"a template that nobody defines", versionOf(v1.MethodHelm), "templates/x.yaml", `{{ include "web.nmae" . }}`, `no template "web.nmae"`},
		{"such a one below others", versionOf(v1.MethodHelm), "templates/x.yaml",
			`{{ define "web.a" }}{{ indent 2 (include "web.nmae" .) | trim }}{{ end }}{{ include "web.a" . }}`, `no template "web.nmae"`},
		{"no YAML", versionOf(manifests), "x.yaml", "a: [", "x.yaml:1: the rendered manifest "},
		{"no YAML of a chart", versionOf(v1.MethodHelm), "templates/x.yaml", "a: [", "web/templates/x.yaml"},
		{"no YAML, beside a fact of the sample", versionOf(manifests), "x.yaml", "a: [{{ .Cluster.Name }}", "the rendered manifest "},
		{"no kind", versionOf(v1.MethodHelm), "templates/x.yaml", "apiVersion: v1\nmetadata: {name: x}", "has no kind"},
		{"no apiVersion", versionOf(manifests), "x.yaml", "kind: ConfigMap\nmetadata: {name: x}", "has no apiVersion"},
		{"it fails for everybody", versionOf(v1.MethodHelm), "templates/x.yaml", `{{ fail "this chart is retired" }}`, "this chart is retired"},
		{"no YAML, beside a value that is set", versionOf(manifests, field(true, `"h"`)), "x.yaml", "a: [{{ .Variables.host }}", "the rendered manifest "},
		{"no YAML of a chart, beside a default", versionOf(v1.MethodHelm), "templates/x.yaml", "a: [{{ .Values.tag }}", "web/templates/x.yaml"},
		{"a wrong chart", versionOf(v1.MethodHelm), "values.yaml", "a: [", "values.yaml"},

		{"a required field", versionOf(manifests, field(true, "")), "x.yaml", "{{ if }}", untried},
		{"secrets", versionOf(manifests, secrets), "x.yaml", "{{ if }}", untried},
		{"a value of users", versionOf(manifests), "x.yaml", named + "data: {a: '{{ .Variables.a }}'}", untried},
		{"a name of users", versionOf(v1.MethodHelm), "templates/x.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Values.name }}}", untried},
		{"a value that a chart requires", versionOf(v1.MethodHelm), "templates/x.yaml", `{{ required "set host" .Values.host }}`, untried},
		{"a text of users", versionOf(v1.MethodHelm), "templates/x.yaml", "a: [{{ .Values.end }}", untried},
		{"a text of users that is empty", versionOf(v1.MethodHelm), "templates/x.yaml", "{{ .Values.kind }}: [", untried},
		{"a text of users below a map", versionOf(v1.MethodHelm), "templates/x.yaml", "{{ with .Values.image }}a: [{{ .end }}{{ end }}", untried},
		{"a kind of users", versionOf(manifests), "x.yaml", "apiVersion: v1\nmetadata: {name: x}\n{{ if .Variables.kind }}kind: {{ .Variables.kind }}{{ end }}", untried},
		{"a text of users in values", versionOf(manifests, valuesTemplate("a: [{{ with .Variables.a }}]{{ end }}")), "x.yaml", named, untried},
		{"a text of users in another file", versionOf(v1.MethodHelm), "templates/x.yaml", `a: [{{ include "ends" . }}`, untried},
		{"a text of users beside a called file", versionOf(manifests), "x.yaml", `{{ define "opens" }}a: [{{ end }}`, untried},
		{"a failure that users call", versionOf(manifests), "x.yaml", `{{ define "opens" }}{{ fail "closed" }}{{ end }}`, untried},
		{"a text of users in a dependency", versionOf(v1.MethodHelm), "charts/sub/templates/x.yaml", "a: [{{ .Values.tag }}", untried},
		{"a template of users", versionOf(v1.MethodHelm), "templates/x.yaml", `{{ include (printf "web.%s" .Values.tag) . }}`, untried},
		{"a template that a file names", versionOf(v1.MethodHelm), "templates/x.yaml", `{{ include (.Files.Get "values.yaml") . }}`, untried},
		{"text of users that calls", versionOf(v1.MethodHelm), "templates/x.yaml", `{{ tpl "{{ include \"nmae\" . }}" . }}`, untried},
		{"a release that nobody has", versionOf(manifests, fits("< 1.30")), "x.yaml", "{{ if }}", untried},
		{"a fact of clusters", versionOf(manifests), "x.yaml", named + "data: {a: '{{ .Cluster.Labels.team }}'}", untried},
		{"a fact of clusters in the output", versionOf(manifests), "x.yaml", named + `data: {{ index .Cluster.Labels "team" | default "[" }}`, untried},
		{"such a fact in another file", versionOf(v1.MethodHelm), "templates/x.yaml", `a: {{ include "asks" . }}`, untried},
		{"a fact of clusters in values", versionOf(manifests, valuesTemplate("a: {{ .CAPI.Cluster.spec.x }}")), "x.yaml", named, untried},
		{"nothing for this cluster", versionOf(manifests), "x.yaml", "{{ if false }}" + named + "{{ end }}", untried},
	} {
		content := fstest.MapFS{test.file: {Data: []byte(test.text)}}
		if test.version.Template.Method == v1.MethodHelm {
			if test.file != "values.yaml" {
				content["values.yaml"] = &fstest.MapFile{Data: []byte("tag: v1\nkind: ''\nimage: {tag: v1}\n")}
			}
			content["charts/sub/Chart.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v2\nname: sub\nversion: 1.0.0\n")}
			content["templates/_ends.tpl"] = &fstest.MapFile{Data: []byte(`{{ define "ends" }}{{ if .Values.closed }}]{{ end }}{{ end }}`)}
			content["Chart.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n")}
			content["templates/_asks.tpl"] = &fstest.MapFile{Data: []byte(`{{ define "asks" }}{{ if not (lookup "v1" "Node" "" "") }}[{{ end }}{{ end }}`)}
		}
		if strings.Contains(test.text, "opens") {
			content["y.yaml"] = &fstest.MapFile{Data: []byte(`{{ if not .Variables.closed }}{{ template "opens" }}{{ end }}`)}
		}
		err := trial.Render(t.Context(), "web", test.version, content)
		_, isUntried := errors.AsType[*UntriedError](err)
		reported, isReported := errors.AsType[*Error](err)
		switch {
		case test.want == rendered && err == nil, test.want == untried && isUntried:
		case test.want != rendered && test.want != untried && isReported && strings.Contains(reported.Error(), test.want) && Reason(err) == v1.ReasonRenderFailed:
		default:
			t.Errorf("%s: %T %v, want %s", test.why, err, err, test.want)
		}
	}
}

// TestPackedDependenciesAreUnknown fails when a problem is reported that an unread dependency may cause, or none is
// reported without such a dependency.
func TestPackedDependenciesAreUnknown(t *testing.T) {
	content := fstest.MapFS{"templates/x.yaml": {Data: []byte(`a: [{{ include "lib.x" . }}`)}}
	for _, packed := range []bool{false, true} {
		if packed {
			content["charts/lib-1.0.0.tgz"] = &fstest.MapFile{}
		}
		of := &render.TemplateError{File: "web/templates/x.yaml", Stage: render.StageOutput}
		if got := mayDepend(of, nil, versionOf(v1.MethodHelm), content); got != packed {
			t.Errorf("packed %t: it may depend on data: %t", packed, got)
		}
	}
}

// failing is a method whose renderer fails.
type failing struct{ err error }

func (f failing) Render(context.Context, render.Input) (render.Result, error) {
	return render.Result{}, f.err
}

// TestTrialsReportWhatEndsARenderer fails when a failure of the machine makes a version wrong, or when a version that
// ends every renderer is not.
func TestTrialsReportWhatEndsARenderer(t *testing.T) {
	for _, test := range []struct {
		err    error
		reason string // "": untried; "-": unknown
	}{
		{&render.ExhaustedError{Limit: render.LimitCPU}, v1.ReasonLimitExceeded},
		{&render.DiedError{Of: render.DiedOfStack}, v1.ReasonLimitExceeded},
		{&render.LimitError{}, v1.ReasonLimitExceeded},
		{&render.NoManifestsError{}, v1.ReasonNoManifests},
		{&render.DependenciesMissingError{}, v1.ReasonDependenciesMissing},
		{&render.ExhaustedError{Limit: render.LimitMemory}, ""},
		{&render.DiedError{Of: render.DiedOfMemory}, ""},
		{&render.ExhaustedError{Limit: render.LimitTime}, "-"},
		{&render.DiedError{}, "-"},
		{&render.TemplateError{Stage: render.StageTime}, "-"},
		{&render.LostError{}, "-"},
		{context.Canceled, "-"},
	} {
		trial := &Trial{Methods: map[string]render.Renderer{string(manifests): failing{test.err}}}
		err := trial.Render(t.Context(), "web", versionOf(manifests), fstest.MapFS{})
		_, isUntried := errors.AsType[*UntriedError](err)
		_, isReported := errors.AsType[*Error](err)
		if isUntried != (test.reason == "") || isReported != (len(test.reason) > 1) || isReported && Reason(err) != test.reason {
			t.Errorf("%T %v is %T, want %q", test.err, test.err, err, test.reason)
		}
	}
}
