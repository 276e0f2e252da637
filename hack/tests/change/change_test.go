package change

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/hack/tests/suite"
)

// module is a small one: c imports b imports a; heavy, slow-1 to slow-9 and the command import a.
func module() ([]suite.Package, suite.Seconds) {
	tests := []string{"x_test.go"}
	one := func(folder string, tests []string, imports ...string) suite.Package {
		return suite.Package{Path: "m/" + folder, Folder: folder, TestFiles: tests, Imports: imports}
	}
	all := []suite.Package{
		one("pkg/a", tests), one("pkg/b", tests, "m/pkg/a"), one("pkg/c", tests, "m/pkg/b"),
		one("pkg/heavy", tests, "m/pkg/a"), one("cmd/run", nil, "m/pkg/a"), one("charts", tests),
		one("apis/kinds", tests), one("test/laws", tests),
		one("hack/docs", tests), one("hack/docs/markdown", tests), one("hack/ci", tests), one("test/ocm", tests, "m/pkg/a"),
	}
	seconds := suite.Seconds{"pkg/heavy": 21, "pkg/b": 2}
	for number := range strings.FieldsSeq("1 2 3 4 5 6") {
		all = append(all, one("pkg/slow"+number, tests, "m/charts"))
		seconds["pkg/slow"+number] = 19
	}
	return all, seconds
}

func folders(packages []suite.Package) string {
	var names []string
	for _, one := range packages {
		names = append(names, one.Folder)
	}
	return strings.Join(names, " ")
}

func TestWhatAChangeNeeds(t *testing.T) {
	all, seconds := module()
	for _, test := range []struct {
		why, files                       string
		changed, importing, leftOut, vet string
		format, notes                    string
	}{
		{
			why: "a package, with those that import it by themselves", files: "pkg/a/a.go",
			changed: "pkg/a", importing: "pkg/b", leftOut: "test/ocm pkg/heavy", vet: "pkg/a cmd/run test/ocm pkg/heavy", format: "pkg/a/a.go",
		},
		{
			why: "a package that takes long and changed itself runs", files: "pkg/heavy/a.go",
			changed: "pkg/heavy", vet: "pkg/heavy", format: "pkg/heavy/a.go",
		},
		{
			why: "test data", files: "pkg/b/testdata/deep/x.yaml pkg/b/testdata/a.md",
			changed: "pkg/b", importing: "pkg/c", vet: "pkg/b",
		},
		{why: "a file that is gone", files: "pkg/c/gone.go", changed: "pkg/c", vet: "pkg/c"},
		{
			why: "a chart: what imports it until the time is used up", files: "charts/seed/templates/x.yaml",
			changed: "charts", vet: "charts pkg/slow5 pkg/slow6",
			importing: "pkg/slow1 pkg/slow2 pkg/slow3 pkg/slow4", leftOut: "pkg/slow5 pkg/slow6", notes: "make generate",
		},
		{
			why: "pages alone", files: "docs/spec/a.md README.md", changed: "hack/docs hack/docs/markdown hack/ci",
		},
		{why: "the Makefile", files: "Makefile .ci/run", changed: "hack/ci"},
		{
			why: "a kind", files: "apis/kinds/x.go", changed: "apis/kinds", vet: "apis/kinds", format: "apis/kinds/x.go",
			notes: "make generate",
		},
		{why: "what all depend on", files: "go.mod go.sum", notes: "go.mod changed, which every package depends on"},
		{
			why: "another module", files: "hack/promql/main.go", format: "hack/promql/main.go",
			notes: "hack/promql/main.go: no package",
		},
		{why: "laws run in any case", files: "test/laws/x.go", format: "test/laws/x.go"},
	} {
		t.Run(test.why, func(t *testing.T) {
			there := func(file string) bool { return !strings.Contains(file, "gone") }
			plan := Make(strings.Fields(test.files), there, all, seconds)
			want := []string{test.changed, test.importing, test.leftOut, test.vet, test.format}
			got := []string{
				folders(plan.Changed), folders(plan.Importing), folders(plan.LeftOut), folders(plan.Vet),
				strings.Join(plan.Format, " "),
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("changed, importing, left out, vetted, formatted: %s", diff)
			}
			notes := strings.Join(plan.Notes, "\n")
			if !strings.Contains(notes, test.notes) || (test.notes == "") != (notes == "") {
				t.Errorf("notes %q, want %q", notes, test.notes)
			}
		})
	}
}
