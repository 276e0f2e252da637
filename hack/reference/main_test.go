package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-addons/trellis/test/binaries"
)

func TestPagesAreThoseOfTheCode(t *testing.T) {
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	made, err := pages(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range made {
		got, err := os.ReadFile(filepath.Join(root, "docs", "reference", name))
		if err != nil {
			t.Error(err)
			continue
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("docs/reference/%s is not what the code says: run make generate (-want +got):\n%s", name, diff)
		}
	}
}

// nameOfTemplate is a name with our prefix in a template of a chart; a part that is filled in ends it.
var nameOfTemplate = regexp.MustCompile(`\b` + regexp.QuoteMeta(prefix) + `[a-z0-9.-]*[a-z0-9-]`)

// Red when a template of a chart, a policy's expression too, has a label or an annotation that the page lacks.
func TestNamesOfChartsAreOnThePage(t *testing.T) {
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "reference", "names.md"))
	if err != nil {
		t.Fatal(err)
	}
	templates, err := filepath.Glob(filepath.Join(root, "charts", "*", "templates", "*"))
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, template := range templates {
		text, err := os.ReadFile(template)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range nameOfTemplate.FindAllString(string(text), -1) {
			count++
			if !strings.Contains(string(page), "| `"+name) {
				t.Errorf("docs/reference/names.md lacks %s of %s", name, filepath.Base(template))
			}
		}
	}
	if count < 20 {
		t.Errorf("only %d names in %d templates: this test reads the wrong files", count, len(templates))
	}
}

// Red when a label that a role gathers by is left out, when a known one is listed twice, and when one without an explanation is accepted.
func TestNamesOfObjects(t *testing.T) {
	object := func(kind string, fields map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"kind": kind, "metadata": fields}}
	}
	gathering := object("ClusterRole", map[string]any{"name": "viewer"})
	gathering.Object["aggregationRule"] = map[string]any{"clusterRoleSelectors": []any{
		map[string]any{"matchLabels": map[string]any{prefix + "to-viewer": "true"}},
	}}
	known := []group{{constants: []named{{value: prefix + "role"}}}}
	labelled := object("ConfigMap", map[string]any{"labels": map[string]any{prefix + "role": "merged", "app": "x"}})
	found, err := namesBeside(known, []*unstructured.Unstructured{gathering, labelled})
	want := group{constants: []named{{
		value: prefix + "to-viewer", says: "= \"true\" on a ClusterRole adds its rules to ClusterRole `viewer`.",
	}}}
	if diff := cmp.Diff(want, found, cmp.AllowUnexported(group{}, named{})); diff != "" || err != nil {
		t.Errorf("names (-want +got):\n%s%v", diff, err)
	}
	if _, err := namesBeside(nil, []*unstructured.Unstructured{labelled}); err == nil || !strings.Contains(err.Error(), prefix+"role") {
		t.Errorf("of a label that nothing explains is said %v", err)
	}
}

func TestFlagsOfHelp(t *testing.T) {
	found := flagsOf("Flags:\n  -a value\n    \ttakes a\n  -b-c\n    \tis on (default true)\n  -d duration\n    \tthe wait\n    \tin all (default 10m0s)\n" +
		"  -e string\n    \ta name (default \"kubermatic\")\n  -v\ttell\n")
	want := []programFlag{
		{"a", "value", "", "takes a"}, {"b-c", "true or false", "true", "is on"}, {"d", "duration", "10m0s", "the wait in all"},
		{"e", "string", "kubermatic", "a name"}, {"v", "true or false", "", "tell"},
	}
	if diff := cmp.Diff(want, found, cmp.AllowUnexported(programFlag{})); diff != "" {
		t.Errorf("flags (-want +got):\n%s", diff)
	}
}

func TestConstantsOfAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "names.go")
	text := "package x\n\n// Prefix starts all.\nconst Prefix = \"x/\"\n\n// Labels.\nconst (\n\t// LabelA is on a.\n\tLabelA = Prefix + \"a\"\n\tcount = 3\n)\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := groups(file)
	want := []group{
		{"Prefix starts all.", []named{{"Prefix", "x/", "starts all."}}}, {"Labels.", []named{{"LabelA", "x/a", "is on a."}}},
	}
	if diff := cmp.Diff(want, found, cmp.AllowUnexported(group{}, named{})); diff != "" || err != nil {
		t.Errorf("constants (-want +got):\n%s%v", diff, err)
	}
}
