package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

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
