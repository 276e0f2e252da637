package chart_test

import (
	"context"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/pkg/render/chart"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
)

const (
	clusterToken  = "token-of-a-cluster-admin"
	providerToken = "token-of-the-provider"
	kubeconfig    = "apiVersion: v1\nkind: Config\nusers: [{name: admin, user: {token: " + clusterToken + "}}]\n"
	// secretsOf is an expression by which a chart finds the secrets.
	secretsOf = "(lookup `addons.kubermatic.k8c.io/v1` `ClusterSecrets` `` `cluster`)"
)

// withSecrets renders a template, with "values.yaml" and further files of its chart, and the secrets of a cluster in
// its data.
func withSecrets(t *testing.T, template string, values, catalogueValues map[string]any, files ...string) (map[string]any, error) {
	t.Helper()
	asked := input(folder(append([]string{"templates/a.yaml", configMap + "a\ndata:\n  out: " + template + "\n"}, files...)...), values)
	asked.CatalogueValues = catalogueValues
	asked.Data.Cluster.Kubeconfig = kubeconfig
	asked.Data.Cluster.Address.AdminToken = clusterToken
	asked.Data.Credentials = templatedata.Credentials{Hetzner: templatedata.TokenCredentials{Token: providerToken}}
	result, err := chart.New().Render(context.Background(), asked)
	if err != nil {
		return nil, err
	}
	return data(t, result), nil
}

// TestForeignTextGivenToTplSeesNoSecrets: The attack: a chart renders a value with tpl, and the value reads the
// secrets. The test ignores that package values refuses such a value earlier: text also comes from the cluster's
// annotations, and from encoding functions. The test fails without the guard in renderFiles; each row fails without
// the part that it names.
func TestForeignTextGivenToTplSeesNoSecrets(t *testing.T) {
	const (
		kubeconfigOf = "{{ " + secretsOf + ".Kubeconfig }}"
		all          = "{{ " + secretsOf + ".Kubeconfig }} {{ " + secretsOf + ".Credentials | toJson }} {{ .Values.kkp | toJson }} {{ " + secretsOf + ".AdminToken }}"
		harmless     = "{{ .Values.kkp.Cluster.Name }}"
	)
	for _, test := range []struct{ why, template, extra string }{
		{"the attack", `{{ tpl .Values.extra . | quote }}`, all},
		{"all of the data", `{{ tpl .Values.extra . | quote }}`, "{{ . | toJson }}"},
		{"piped", `{{ . | tpl .Values.extra | quote }}`, all},
		{"in brackets", `{{ quote (tpl (.Values.extra) (.)) }}`, all},
		{"within trim marks", `{{- tpl .Values.extra . | quote -}}`, all},
		{"set", `{{ $x := tpl .Values.extra $ }}{{ quote $x }}`, all},
		{"over several lines", "{{ tpl\n .Values.extra\n . | quote }}", all},
		{"of a comment's neighbour", "{{/* tpl */}}{{ tpl .Values.extra . | quote }}", all},
		{"beside quotes", `{{ tpl (printf "%s|}})" .Values.extra) . | quote }}`, all},
		{"in code", `{{ tpl (b64dec .Values.code) . | quote }}`, all},
		{"made of pieces", `{{ tpl (printf "{%s" .Values.tail) . | quote }}`, kubeconfigOf},
		{"made of pieces of the chart", `{{ tpl (print "{{ " .Values.bare " }}") . | quote }}`, kubeconfigOf},
		{"with data copied before", `{{ tpl .Values.extra (deepCopy .) | quote }}`, all},
		{"with data merged before", `{{ tpl .Values.extra (merge (dict "a" 1) .) | quote }}`, all},
		{"with data in itself", `{{ $_ := set .Values "self" . }}{{ tpl .Values.extra . | quote }}`, all},
		{"with a part of the data", `{{ tpl .Values.extra (dict "Values" .Values) | quote }}`, all},
		{"with a list", `{{ tpl "{{ index . 0 }}" (list (tpl .Values.extra .)) | quote }}`, all},
		{"values that hold a secret", `{{ tpl .Values.extra . | quote }}`, "{{ .Values.made }}"},
		{"twice", `{{ tpl (tpl .Values.extra .) . | quote }}`, `{{ "` + kubeconfigOf + `" }}`},
		{"by a tpl of its own", `{{ tpl .Values.extra . | quote }}`, `{{ tpl "` + kubeconfigOf + `" . }}`},
		{"as a list of objects", `{{ tpl .Values.extra . | quote }}`, "{{ lookup `addons.kubermatic.k8c.io/v1` `ClusterSecrets` `` `` | toJson }}"},
		{"handed over by the chart", `{{ tpl .Values.extra (dict "Template" .Template "found" ` + secretsOf + `) | quote }}`, "{{ .found | toJson }}"},
		{"put into the values by the chart", `{{ $_ := set .Values "found" ` + secretsOf + ` }}{{ tpl .Values.extra . | quote }}`, "{{ .Values.found | toJson }}"},
		{"by a text of the chart", `{{ tpl .Values.own . | quote }}`, all},
		{"in a helper", `{{ include "helper" . | quote }}`, all},
		{"as list items of YAML", `{{ tpl (toYaml (list .Values.extra)) . | quote }}`, all},
		{"by the guard", `{{ tpl .Values.extra . | quote }}`, `{{ (lookup "render.trellis/v1" "Tpl" "" "x").data }}{{ include "trellis.tpl" (list "{{ .Values.own }}" .) }}`},
	} {
		values := map[string]any{
			"extra": test.extra, "made": "token: " + clusterToken, "tail": strings.TrimPrefix(test.extra, "{"),
			"bare": strings.Trim(test.extra, "{ }"), "code": encode(test.extra),
		}
		got, err := withSecrets(t, test.template, values, nil, "values.yaml", "own: \"{{ tpl .Values.extra . }}\"\n",
			"templates/_helper.tpl", `{{ define "helper" }}{{ tpl .Values.extra . }}{{ end }}`)
		text, _ := got["out"].(string)
		if err != nil && !strings.Contains(err.Error(), "error calling tpl") {
			t.Errorf("%s: %v", test.why, err)
		}
		if err != nil {
			text = err.Error()
		}
		if strings.Contains(text, clusterToken) || strings.Contains(text, providerToken) {
			t.Errorf("%s: got %q", test.why, text)
		}
		values["extra"] = harmless
		if got, err := withSecrets(t, `{{ tpl .Values.extra . | quote }}`, values, nil); err != nil || got["out"] != "47s2ddlfgj" {
			t.Fatalf("what is no secret is %q, %v", got["out"], err)
		}
	}
}

// TestTextBesideTheChartsOwnSeesNoSecrets: Braces at the ends of the chart's own text begin an action together with a
// brace of foreign text, and templates can be called by the name of their file. The test fails when edgesOf is "\x00"
// for all texts, and when a file is parsed under its own name.
func TestTextBesideTheChartsOwnSeesNoSecrets(t *testing.T) {
	const secret = ` printf "%s" ` + secretsOf + `.Kubeconfig }}`
	for _, test := range []struct{ why, template, extra string }{
		{"a brace ends what is the chart's own", `{{ tpl (print .Values.own .Values.extra) . | quote }}`, "{" + secret},
		{"a brace begins what is the chart's own", `{{ tpl (print .Values.extra .Values.quoted " |" .Values.rest) . | quote }}`, "{"},
		{"a template is called as its file", `{{ define "templates/a.yaml" }}x{{ end }}{{ tpl .Values.extra . | quote }}`, "{{" + secret},
	} {
		got, err := withSecrets(t, test.template, map[string]any{"extra": test.extra, "rest": secret}, nil,
			"values.yaml", "own: '{{ .Release.Name }} {'\nquoted: '{\"{{ .Release.Name }}\"'\n")
		text, _ := got["out"].(string)
		if err != nil {
			text = err.Error()
		}
		if strings.Contains(text, clusterToken) || err != nil && !strings.Contains(text, "error calling tpl") {
			t.Errorf("%s: got %q", test.why, text)
		}
	}
}

// TestOwnTextGivenToTplSeesSecrets: The chart's own text, and the catalogue's, is rendered with secrets. The test
// fails when one of them does not count as the chart's own.
func TestOwnTextGivenToTplSeesSecrets(t *testing.T) {
	const own = "{{ " + secretsOf + ".AdminToken }}"
	for _, test := range []struct{ why, template string }{
		{"no tpl at all", `{{ ` + secretsOf + `.AdminToken | quote }}`},
		{"written out", `{{ tpl "` + own + `" . | quote }}`},
		{"written out, with text beside it", `{{ tpl (printf "%s" "` + own + `") . | quote }}`},
		{"the chart's values", `{{ tpl .Values.own . | quote }}`},
		{"the chart's values as YAML", `{{ (tpl (toYaml .Values.nested) . | fromYaml).a | quote }}`},
		{"a file", `{{ tpl (.Files.Get "file.txt") . | trim | quote }}`},
		{"the catalogue's values", `{{ tpl .Values.given . | quote }}`},
		{"a helper", `{{ include "helper" (dict "value" .Values.own "context" $) | quote }}`},
		{"a template defined by tpl", `{{ tpl "{{ define \"x\" }}` + own + `{{ end }}{{ include \"x\" . }}" . | quote }}`},
	} {
		given := map[string]any{"given": own}
		got, err := withSecrets(t, test.template, given, given, "values.yaml", "own: '"+own+"'\nnested: {a: '{{ include \"token\" . }}'}\n", "file.txt", own+"\n",
			"templates/_helper.tpl", `{{ define "helper" }}{{- $text := tpl .value .context -}}{{ $text }}{{ end }}{{ define "token" }}`+own+`{{ end }}`)
		if err != nil || got["out"] != clusterToken {
			t.Errorf("%s: got %q, %v", test.why, got["out"], err)
		}
	}
}

// TestGuardedChartsRenderAsBefore fails when rewriting calls of tpl moves lines, or changes text that only looks like
// a call.
func TestGuardedChartsRenderAsBefore(t *testing.T) {
	for _, template := range []string{
		`{{ tpl "a|b" . | quote }}`, "{{ tpl `a\"` . | quote }}", `"{{ "tpl x" }} tpl {{/* tpl . . */}}"`, `{{ tpl .Values.a . | upper | quote }}`,
		`{{ range $i, $x := list (tpl "x" .) (tpl "y" .) }}{{ if eq (tpl $x $) "x" }}{{ $x }}{{ else }}{{ tpl $x $ }}{{ end }}{{ end }}`,
		`{{ lookup "v1" "Secret" "a" "b" | toJson | quote }}`, `{{ lookup "v1" "Secret" "a" "" | toJson | quote }}`,
		`{{ with tpl .Values.a . }}{{ . }}{{ end }}{{ template "t" (tpl .Values.a .) }}{{ define "t" }}{{ . }}{{ end }}`,
	} {
		values := map[string]any{"a": "text of {{ .Release.Name }}"}
		plain, err := renderChart(folder("templates/a.yaml", configMap+"a\ndata:\n  out: "+template+"\n"), values)
		if err != nil {
			t.Fatal(template, err)
		}
		got, err := withSecrets(t, template, values, nil)
		if diff := cmp.Diff(data(t, plain), got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", template, err, diff)
		}
	}
	_, err := withSecrets(t, "x\n  other: {{ tpl\n   \"a\" . }}\n  third: {{ fail \"here\" }}", nil, nil)
	if err == nil || !strings.Contains(err.Error(), "a.yaml:9") {
		t.Errorf("the line is another: %v", err)
	}
}

func encode(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// TestSecretsAreNoPartOfTheValues: A chart prints its values, and gets the secrets and the cluster's data. The test
// fails if .Values has the secrets.
func TestSecretsAreNoPartOfTheValues(t *testing.T) {
	for _, template := range []string{
		`{{ .Values | toJson | quote }}`, `{{ .Values.kkp | toYaml | quote }}`, `{{ get .Values "kkp" | toJson | quote }}`,
		`{{ range $key, $value := .Values }}{{ toJson $value | quote }}{{ end }}{{/* kkp */}}`,
		`{{ . | toJson | quote }}{{ if .Values.kkp }}{{ end }}`, `{{ index .Values "kkp" "Cluster" | toJson | quote }}`,
	} {
		got, err := withSecrets(t, template+"\n  found: {{ "+secretsOf+".Credentials.Hetzner.Token }}", nil, nil)
		if err != nil || got["found"] != providerToken {
			t.Errorf("%s: the chart finds %q, %v", template, got["found"], err)
		}
		text, _ := got["out"].(string)
		for _, word := range []string{clusterToken, providerToken, "Credentials", "Kubeconfig", "AdminToken"} {
			if strings.Contains(text, word) {
				t.Errorf("%s: got %q", template, text)
			}
		}
	}
}
