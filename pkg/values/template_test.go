package values_test

import (
	"strings"
	"testing"
	"text/template"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/values"
)

func TestCheckTemplate(t *testing.T) {
	for _, test := range []struct{ why, template, want string }{
		{"none", "", ""},
		{"plain values", "a: 1\nb: {c: d}\n", ""},
		{"functions of all kinds", `a: {{ .Cluster.Name | default "x" | quote }} {{ if and (eq 1 1) (semverCompare "1" "2") }}{{ Image "nginx" }}{{ end }}`, ""},
		{"its own templates", `{{ define "a" }}{{ . }}{{ end }}a: {{ template "a" 1 }}`, ""},
		{"what envsubst leaves", "a: 1\n{{-  := len .Cluster.Name }}\n", `line 2: unexpected ":="`},
		{"a variable that is not there", "{{ $n }}", `line 1: undefined variable "$n"`},
		{"a function that is not there", "\n\n{{ getHostByName \"a\" }}", `line 3: function "getHostByName" not defined`},
		{"an end that is missing", "{{ if true }}", "line 1: unexpected EOF"},
		{"an action that is not closed", "a: {{ 1", "line 1: unclosed action"},
		{"a template twice", `{{ define "a" }}x{{ end }}{{ define "a" }}y{{ end }}`, "multiple definition"},
		{"too long", strings.Repeat("x", 65<<10), "shorten it"},
		{"deep", "{{ " + strings.Repeat("(", 60<<10), "line 1:"},
		{"deep in another way", strings.Repeat("{{if 1}}", 8<<10), "line 1: unexpected EOF"},
		{"a long name", "{{ " + strings.Repeat("x", 60<<10) + " }}", "line 1: function"},
	} {
		field, err := values.CheckTemplate(&kubermaticv1.AddonVersion{ValuesTemplate: test.template})
		if (err == nil) != (test.want == "") || err != nil && (field != "valuesTemplate" || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: got %q %v, want %q", test.why, field, err, test.want)
		}
		if err != nil && len(err.Error()) > 256 {
			t.Errorf("%s: the message has %d bytes", test.why, len(err.Error()))
		}
	}
}

// mayCall says whether a valuesTemplate may call a function of that name.
func mayCall(name string) bool {
	_, err := values.CheckTemplate(&kubermaticv1.AddonVersion{ValuesTemplate: "{{ " + name + " }}"})
	return err == nil
}

// TestGoHasWhatTemplatesMayCall looks at the functions that Go's own templates bring.
func TestGoHasWhatTemplatesMayCall(t *testing.T) {
	for name := range strings.FieldsSeq("and call html index slice js len not or print printf println urlquery eq ge gt le lt ne") {
		if !mayCall(name) {
			t.Errorf("%q is refused", name)
		}
		if _, err := template.New("").Parse("{{ " + name + " }}"); err != nil {
			t.Errorf("%q is no function of Go: %v", name, err)
		}
	}
}
