package laws

import (
	"go/ast"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// reasons are the exported string constants of the conditions' file, by name.
func reasons(file source) map[string]string {
	found := map[string]string{}
	for _, declaration := range file.tree.Decls {
		constants, ok := declaration.(*ast.GenDecl)
		if !ok || constants.Tok != token.CONST {
			continue
		}
		for _, spec := range constants.Specs {
			value, ok := spec.(*ast.ValueSpec)
			if !ok || len(value.Values) != 1 {
				continue
			}
			if literal, ok := value.Values[0].(*ast.BasicLit); ok {
				found[value.Names[0].Name], _ = strconv.Unquote(literal.Value)
			}
		}
	}
	return found
}

// constantsOf the conditions' file, among the project's files.
func constantsOf(t *testing.T, files []source) map[string]string {
	t.Helper()
	at := slices.IndexFunc(files, func(file source) bool { return file.file == "apis/kubermatic/v1/conditions.go" })
	if at < 0 {
		t.Fatal("the conditions' file is not where it was")
	}
	constants := reasons(files[at])
	if len(constants) < 50 {
		t.Fatalf("only %d constants found: this test reads the wrong file", len(constants))
	}
	return constants
}

// setPage is the page of AddonSets, and setPackages are the folders and files whose reasons a set's status shows: those that carry sets
// out, what installations of theirs are judged by, why no version is chosen, and the master's.
var (
	setPage     = path.Join("docs", "spec", "addonset.md")
	setPackages = []string{
		"pkg/fleet/waves", "pkg/fleet/rollout", "pkg/controllers/addonset", "pkg/controllers/coreaddon", "pkg/fleet/installation/state.go",
		"pkg/catalogue/fits.go", "pkg/catalogue/refusals.go", "pkg/catalogue/select.go",
		"pkg/controllers/distributor/fleet", "pkg/controllers/distributor/sets.go",
	}
	// notOfSets are files of these rooms that are about another kind's conditions.
	notOfSets = []string{"pkg/controllers/coreaddon/status.go"}
)

// setReasons complains where a set's room uses a reason that the page of sets does not have, by the constants' names and values.
func setReasons(constants map[string]string, page string) func(source) []string {
	return func(file source) []string {
		if !file.isProduct() || !within(file.file, setPackages) || slices.Contains(notOfSets, file.file) {
			return nil
		}
		var complaints []string
		ast.Inspect(file.tree, func(node ast.Node) bool {
			use, ok := node.(*ast.SelectorExpr)
			if !ok || !reasonName.MatchString(use.Sel.Name) {
				return true
			}
			if value, isConstant := constants[use.Sel.Name]; isConstant && !strings.Contains(page, "`"+value+"`") {
				complaints = append(complaints, file.complain(use, "%s does not have `%s`, which a set's status can show", setPage, value))
			}
			return true
		})
		return complaints
	}
}

// reasonName is how constants of reasons are called, of conditions and of what excludes a version.
var reasonName = regexp.MustCompile(`^(Reason|Excluded)[A-Z]`)

func TestEveryReasonIsInASpecPage(t *testing.T) {
	root := checkout(t)
	pages := ""
	names, err := filepath.Glob(filepath.Join(root, "docs", "spec", "*.md"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no spec pages: %v", err)
	}
	for _, name := range names {
		page, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		pages += string(page)
	}
	for name, value := range constantsOf(t, sources(t)) {
		if !strings.Contains(pages, "`"+value+"`") {
			t.Errorf("%s: no page of docs/spec explains `%s`", name, value)
		}
	}
}

func TestReasonsAreFound(t *testing.T) {
	found := reasons(snippet(t, "apis/x/conditions.go", "package x\nconst (\n\tReasonA = \"A\"\n\tReasonB = \"B\"\n)\nvar C = \"C\""))
	if len(found) != 2 || found["ReasonB"] != "B" {
		t.Errorf("found %v, expected two reasons", found)
	}
}

// Red when a set's status can show a reason that its page does not tell the meaning of, or when a room is not where it was.
func TestEveryReasonOfASetIsInItsSpecPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(checkout(t), setPage))
	if err != nil {
		t.Fatal(err)
	}
	files := sources(t)
	constants := constantsOf(t, files)
	check, checkAll := setReasons(constants, string(page)), setReasons(constants, "")
	used := map[string]bool{}
	for _, file := range files {
		for _, complaint := range check(file) {
			t.Error(complaint)
		}
		if len(checkAll(file)) > 0 {
			used[file.pkg()], used[file.file] = true, true
		}
	}
	for _, pkg := range setPackages {
		if !used[pkg] {
			t.Errorf("no reason is used in %s: this test reads the wrong rooms", pkg)
		}
	}
}

// Red when the law is blind to a room of sets, or complains of what is no reason of theirs.
func TestReasonsOfSetsCatch(t *testing.T) {
	constants := map[string]string{"ReasonHalted": "Halted", "ReasonOdd": "Odd", "ExcludedOdd": "OddToo", "EventOdd": "OddEvent"}
	check := setReasons(constants, "| `Halted` | more failed than may; no Odd one |")
	code := func(body string) string { return "package x\nfunc f() {" + body + "}" }
	catches(t, check, []law{
		{"one that the page has", "pkg/fleet/waves/a.go", code("_ = v1.ReasonHalted"), ""},
		{"an event, which is no reason", "pkg/fleet/waves/a.go", code("_ = v1.EventOdd"), ""},
		{"a type", "pkg/fleet/waves/a.go", code("_ = v1.ExcludedVersion{}"), ""},
		{"a test", "pkg/fleet/waves/a_test.go", code("_ = v1.ReasonOdd"), ""},
		{"another room", "pkg/wavesome/a.go", code("_ = v1.ReasonOdd"), ""},
		{"another file of the room", "pkg/fleet/installation/order.go", code("_ = v1.ReasonOdd"), ""},
		{"another kind's conditions", "pkg/controllers/coreaddon/status.go", code("_ = v1.ReasonOdd"), ""},
		{"a cluster's", "pkg/fleet/waves/a.go", code("return rollout.Trouble{Reason: v1.ReasonOdd}"), "docs/spec/addonset.md does not have `Odd`"},
		{"by another name of the package", "pkg/fleet/rollout/a.go", code("_ = kubermaticv1.ReasonOdd"), "`Odd`"},
		{"an item's", "pkg/controllers/addonset/a.go", code("p.block(item, v1.ReasonOdd, why)"), "`Odd`"},
		{"a core add-on's", "pkg/controllers/coreaddon/a.go", code("_ = v1.ReasonOdd"), "`Odd`"},
		{"a refusal", "pkg/catalogue/fits.go", code("_ = v1.ExcludedOdd"), "`OddToo`"},
		{"an installation's", "pkg/fleet/installation/state.go", code("_ = map[string]bool{v1.ReasonOdd: true}"), "`Odd`"},
	})
}
