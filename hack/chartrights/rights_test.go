package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const root = "../.."

// Red when a room declares a right, or a template is edited by hand, and `make generate` was not run.
func TestWhatIsDeclaredIsWritten(t *testing.T) {
	declared, err := read(root)
	if err != nil {
		t.Fatal(err)
	}
	written, err := files(declared)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range written {
		have, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(have)); diff != "" {
			t.Errorf("%s: run `make generate` (-want +have):\n%s", path, diff)
		}
	}
}

// Red when a rule of a manager's role is written by hand, where nothing compares it with what the code asks for.
func TestRolesOfManagersHaveNoRulesOfTheirOwn(t *testing.T) {
	for _, chart := range []string{"trellis-master", "trellis-seed"} {
		content, err := os.ReadFile(filepath.Join(root, "charts", chart, "templates", "rbac.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(content), "verbs:") || strings.Count(string(content), `include "trellis.rights.`) != 2 {
			t.Errorf("rbac.yaml of %s has other rules than those of _rights.tpl", chart)
		}
	}
}

// Red when a right can be declared that no role may have, or one is dropped because it is misspelt.
func TestWrongDeclarationsAreRefused(t *testing.T) {
	for line, says := range map[string]string{
		"seed * secrets -- a":                                                                    `verb "*"`,
		"seed get,escalate roles.rbac -- a":                                                      `verb "escalate"`,
		"seed bind roles.rbac -- a":                                                              `verb "bind"`,
		"seed impersonate users -- a":                                                            `verb "impersonate"`,
		"seed deletecollection secrets -- a":                                                     `verb "deletecollection"`,
		"seed sign signers.certificates.k8s.io -- a":                                             `verb "sign"`,
		"seed approve signers.certificates.k8s.io if=approve -- a":                               `verb "approve" is for`,
		"seed approve signers.certificates.k8s.io names={signers} if=agents -- a":                `verb "approve" is for`,
		"seed approve signers.certificates.k8s.io names={signers},example.com/a if=approve -- a": `verb "approve" is for`,
		"seed approve nodes,signers.certificates.k8s.io names={signers} if=approve -- a":         `verb "approve" is for`,
		"seed get * -- a":                                       `"*" names nothing`,
		"seed get secrets.* -- a":                               `"secrets.*" names nothing`,
		"seed get secrets names= -- a":                          `"" names nothing`,
		"seeds get secrets -- a":                                `role "seeds"`,
		"seed get secrets if=sometimes -- a":                    `condition "sometimes"`,
		"seed get secrets when=standalone -- a":                 "neither names= nor if=",
		"seed get secrets names={mine} -- a":                    "nothing is known of {mine}",
		"distributor get secrets if=standalone -- a":            "has no condition",
		"seed get secrets":                                      "is declared as",
		"seed secrets -- a":                                     "is declared as",
		"seed get secrets names=a,b*,c if=standalone -- reason": `"b*" names nothing`,
	} {
		if _, err := declarations("package a\n//rights:" + line + "\n"); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", line, err, says)
		}
	}
}

// Red when two packages' wishes for one resource are not one rule, or a condition holds for more than it was declared for.
func TestRulesAreMerged(t *testing.T) {
	declared, err := declarations(`
//rights:seed list,get secrets -- one
//rights:seed,master get secrets -- two
//rights:seed delete secrets if=query -- three
//rights:seed delete secrets if=metrics -- four
//rights:seed get things/status.example.com names=a,{lease} -- five
//rights:seed get {providerKinds} -- six
//rights:seed get {controlPlanes} if=cluster-api -- seven
//rights:seed approve signers.certificates.k8s.io names={signers} if=approve -- eight
`)
	if err != nil {
		t.Fatal(err)
	}
	want := `# one
# two
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, list]
{{- if or .Values.metrics.secure .Values.query.enabled }}
# three
# four
- apiGroups: [""]
  resources: [secrets]
  verbs: [delete]
{{- end }}
{{- if (has "cluster-api" .Values.clusterAPI.kinds) }}
{{- range .Values.clusterAPI.providers }}
# seven
- apiGroups: [{{ .group }}]
  resources: [{{ .resource }}]
  verbs: [get]
{{- end }}
{{- end }}
{{- range .Values.providerKinds }}
# six
- apiGroups: [{{ .group }}]
  resources: [{{ .resource }}]
  verbs: [get]
{{- end }}
{{- if (and .Values.agents.enabled .Values.agents.approve) }}
# eight
- apiGroups: [certificates.k8s.io]
  resources: [signers]
  resourceNames: [{{ include "trellis.signers" . }}]
  verbs: [approve]
{{- end }}
# five
- apiGroups: [example.com]
  resources: [things/status]
  resourceNames: [a, {{ include "trellis.lease" . | quote }}]
  verbs: [get]
`
	if diff := cmp.Diff(want, text(merged(declared, "seed"))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := text(merged(declared, "master")); got != "# two\n- apiGroups: [\"\"]\n  resources: [secrets]\n  verbs: [get]\n" {
		t.Errorf("the master has\n%s", got)
	}
}
