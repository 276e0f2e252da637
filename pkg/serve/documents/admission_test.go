package documents_test

import (
	"errors"
	"strings"
	"testing"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/serve/documents"
)

const asked = `- name: web
  targetNamespace: Web
  versions:
  - &one
    version: "1.0.0"
    constraints:
      kkpVersion: ">= 2.28"
      k8sVersion: ">= newest"
    template:
      method: go-template
      formSpec:
      - {internalName: size, displayName: Size, type: text}
      - internalName: a.b
        displayName: B
        type: number
        default: many
    source: {git: {remote: "https://git.example.com/addons.git", ref: {tag: "1.0.0"}, path: web}}
  - <<: *one
    version: "1.1.0"
    constraints: {k8sVersion: ">= 1.34"}
    template: {method: go-template, clusterSecrets: true}
---
apiVersion: kubermatic.k8c.io/v1
kind: AddonCatalogue
metadata: {name: core}
spec:
  type: Core
  priority: 3
  addons:
  - name: cni
    versions:
    - version: "1.0.0"
      template: {method: go-template, clusterSecrets: true}
      source: {git: {remote: "https://git.example.com/addons.git", ref: {tag: "1.0.0"}, path: cni}}
`

// Red when a problem has not the line of its field, or an add-on is checked as one of another type of catalogue.
func TestCheckFindsTheLinesOfFields(t *testing.T) {
	for _, test := range []struct {
		kind v1.CatalogueType
		want []string
	}{
		{"", []string{
			`x.yaml line 2: addon "web": targetNamespace:`, `x.yaml line 8: addon "web" version "1.0.0": constraints.k8sVersion:`,
			`x.yaml line 13: addon "web" version "1.0.0": template.formSpec[a.b]:`, `x.yaml line 21: addon "web" version "1.1.0": template.clusterSecrets:`,
		}},
		{v1.CatalogueCore, []string{"x.yaml line 2: ", "x.yaml line 8: ", "x.yaml line 13: "}},
		{v1.CatalogueCustom, []string{"x.yaml line 2: ", "x.yaml line 8: ", "x.yaml line 13: ", "x.yaml line 21: ", "x.yaml line 33: "}},
	} {
		content, err := documents.ReadFile(t.Context(), "x.yaml", int64(len(asked)), []byte(asked))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		if refused, ok := errors.AsType[*documents.InvalidError](content.Check(t.Context(), test.kind)); ok {
			for _, problem := range refused.Problems {
				got = append(got, problem.String())
			}
		}
		for _, want := range test.want {
			if !strings.Contains(strings.Join(got, "\n"), want) {
				t.Errorf("%q: lacks %q:\n%s", test.kind, want, strings.Join(got, "\n"))
			}
		}
		if len(got) != len(test.want) {
			t.Errorf("%q: %d problems:\n%s", test.kind, len(got), strings.Join(got, "\n"))
		}
		if len(content.Objects) != 1 || content.Objects[0].Name != "core" || content.Objects[0].Spec.Priority != 3 || content.Objects[0].Place.Line != 23 {
			t.Errorf("objects %+v", content.Objects)
		}
	}
}

// Red when a file that is too large is decoded, or a catalogue in git is no object.
func TestReadFileIsBounded(t *testing.T) {
	_, err := documents.ReadFile(t.Context(), "-", 10<<20, []byte("["))
	if err == nil || err.Error() != "-: the file has 10485760 bytes, more than 1048576: split it" {
		t.Errorf("got %v", err)
	}
	git := "apiVersion: kubermatic.k8c.io/v1\nkind: AddonCatalogue\nmetadata: {name: git}\nspec: {git: {remote: https://x.example.com/a.git, ref: {branch: main}}}\n"
	content, err := documents.ReadFile(t.Context(), "-", int64(len(git)), []byte(git))
	if err != nil || len(content.Objects) != 1 || content.Objects[0].Spec.Git == nil {
		t.Errorf("got %+v, %v", content, err)
	}
}
