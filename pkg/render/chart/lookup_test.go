package chart_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-addons/trellis/pkg/render/chart"
)

const storedPassword = "c3RvcmVkLXBhc3N3b3Jk" // stored-password

// stored are objects for lookup: a Secret and a ConfigMap in each of two namespaces, and a ClusterRole.
func stored() []*unstructured.Unstructured {
	object := func(version, kind, namespace, name string, data map[string]any) *unstructured.Unstructured {
		made := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind, "data": data}}
		made.SetNamespace(namespace)
		made.SetName(name)
		return made
	}
	return []*unstructured.Unstructured{
		object("v1", "Secret", "my-namespace", "login", map[string]any{"password": storedPassword}),
		object("v1", "ConfigMap", "my-namespace", "a", map[string]any{"x": "one"}),
		object("v1", "ConfigMap", "other", "a", map[string]any{"x": "two"}),
		object("rbac.authorization.k8s.io/v1", "ClusterRole", "", "reader", map[string]any{}),
	}
}

// TestLookup fails when function lookup finds nothing, another namespace's object, one of another version, or shares
// an object that a template changes.
func TestLookup(t *testing.T) {
	for template, want := range map[string]string{
		`{{ (lookup "v1" "Secret" "my-namespace" "login").data.password }}`:                                                storedPassword,
		`{{ (lookup "v1" "ConfigMap" "other" "a").data.x }}`:                                                               "two",
		`{{ len (lookup "v1" "ConfigMap" "" "").items }}`:                                                                  "2",
		`{{ (lookup "v1" "ConfigMap" "other" "").kind }}`:                                                                  "ConfigMapList",
		`{{ lookup "v1" "ConfigMap" "other" "none" | toJson }}`:                                                            "{}",
		`{{ lookup "v1" "ConfigMap" "" "a" | toJson }}`:                                                                    "{}",
		`{{ lookup "v1" "ConfigMap" "third" "" | toJson }}`:                                                                "{}",
		`{{ lookup "v2" "Secret" "my-namespace" "login" | toJson }}`:                                                       "{}",
		`{{ lookup "v1" "Node" "" "" | toJson }}`:                                                                          "{}",
		`{{ (lookup "rbac.authorization.k8s.io/v1" "ClusterRole" "x" "reader").metadata.name }}`:                           "reader",
		`{{ $_ := unset (lookup "v1" "ConfigMap" "other" "a") "data" }}{{ (lookup "v1" "ConfigMap" "other" "a").data.x }}`: "two",
	} {
		asked := input(folder("templates/a.yaml", configMap+"a\ndata:\n  out: '"+template+"'\n"), nil)
		asked.Found = stored()
		result, err := chart.New().Render(context.Background(), asked)
		if err != nil {
			t.Errorf("%s: %v", template, err)
			continue
		}
		if diff := cmp.Diff(map[string]any{"out": want}, data(t, result)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", template, diff)
		}
	}
}

// TestTextOfUsersMeetsNothingThatIsLookedUp: The results of lookup for a Core add-on are secret: text of users
// doesn't see them, regardless of the caller. The test fails without GuardFound in newGuard, without isForeign in the
// finder, and without the secrets of Found for data that a chart passes on.
func TestTextOfUsersMeetsNothingThatIsLookedUp(t *testing.T) {
	const direct = `{{ (lookup "v1" "Secret" "my-namespace" "login").data | toJson }}`
	for _, test := range []struct{ why, template, extra string }{
		{"asked for itself", `{{ tpl .Values.extra . | quote }}`, direct},
		{"decoded", `{{ tpl .Values.extra . | quote }}`, `{{ (lookup "v1" "Secret" "my-namespace" "login").data.password | default "" | b64dec }}`},
		{"as a list", `{{ tpl .Values.extra . | quote }}`, `{{ lookup "v1" "Secret" "" "" | toJson }}`},
		{"by a template of the chart", `{{ tpl .Values.extra . | quote }}`, `{{ include "stored" . }}`},
		{"by the chart's tpl within", `{{ tpl .Values.extra . | quote }}`, `{{ include "again" . }}`},
		{"handed over by the chart", `{{ tpl .Values.extra (dict "Template" .Template "found" (include "stored" .)) | quote }}`, `{{ .found }}`},
		{"out of its turn", `{{ tpl .Values.extra . | quote }}`,
			`{{ $g := lookup "render.trellis/v1" "Tpl" "" "guard" }}{{ $t := call $g.enter "x" }}{{ call $g.leave $t }}` + direct},
		{"twice out of its turn", `{{ tpl .Values.extra . | quote }}`,
			`{{ $g := lookup "render.trellis/v1" "Tpl" "" "guard" }}{{ $t := call $g.enter "x" }}{{ $u := call $g.leave $t }}{{ call $g.leave $t }}{{ call $g.leave $u }}` + direct},
	} {
		t.Run(test.why, func(t *testing.T) {
			asked := input(folder(
				"templates/a.yaml", configMap+"a\ndata:\n  own: {{ include \"stored\" . | quote }}\n  out: "+test.template+"\n",
				"templates/_stored.tpl", `{{ define "stored" }}{{ with lookup "v1" "Secret" .Release.Namespace "login" }}`+
					`{{ .data.password | b64dec }}{{ end }}{{ end }}{{ define "again" }}{{ tpl "{{ include \"stored\" $ }}" . }}{{ end }}`,
			), map[string]any{"extra": test.extra})
			asked.Found, asked.GuardFound = stored(), true
			result, err := chart.New().Render(context.Background(), asked)
			if err != nil {
				if strings.Contains(err.Error(), "stored-password") {
					t.Errorf("the error tells it: %v", err)
				}
				return
			}
			content := data(t, result)
			if content["own"] != "stored-password" {
				t.Errorf("the chart itself finds %q", content["own"])
			}
			out, _ := content["out"].(string)
			if strings.Contains(out, "stored-password") || strings.Contains(out, storedPassword) {
				t.Errorf("text of users finds %q", out)
			}
		})
	}
}

// TestErrorsHoldNothingThatIsLookedUp fails when an error prints an object that was looked up.
func TestErrorsHoldNothingThatIsLookedUp(t *testing.T) {
	asked := input(folder("templates/a.yaml", `{{ fail ((lookup "v1" "Secret" "my-namespace" "login").data.password | b64dec) }}`), nil)
	asked.Found = stored()
	_, err := chart.New().Render(context.Background(), asked)
	if err == nil || strings.Contains(err.Error(), "stored-password") {
		t.Errorf("got %v", err)
	}
}

// TestOtherMoment fails when a rendering at another moment has today's date.
func TestOtherMoment(t *testing.T) {
	asked := input(folder("templates/a.yaml", configMap+`a
data:
  piped: {{ now | date "2006-01-02" | quote }}
  given: {{ date "15:04:05" now | quote }}
  year: {{ (now).Year | quote }}
  known: {{ .Values.now | quote }}
  text: now
`), map[string]any{"now": "x"})
	asked.OtherMoment = true
	result, err := chart.New().Render(context.Background(), asked)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"piped": "1999-08-07", "given": "16:05:04", "year": "1999", "known": "x", "text": "now"}
	if diff := cmp.Diff(want, data(t, result)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
