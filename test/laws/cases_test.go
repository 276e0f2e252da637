package laws

import (
	"fmt"
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/test/golden"
)

// registers say what the letters of a case's id stand for.
var registers = []struct{ letters, about string }{
	{"AC", "What an attacker tries: a tenant, an author of add-ons, a source, a user cluster."},
	{"AG", "What agents of add-ons can be made to do, and what goes wrong with their credentials, health and hooks."},
	{"RS", "What else goes wrong: processes that are killed, clusters that are out of reach, full disks."},
	{"SC", "What is deployed and linked."},
	{"V", "Advisories of projects like this one and of libraries, each tried here."},
}

var (
	caseID = regexp.MustCompile(`\b(?:AC|AG|RS|SC|V)[0-9]{2}\b`)
	// caseLine is the first line of a test's cases: their ids, and what the test shows of them.
	caseLine = regexp.MustCompile(`^((?:(?:AC|AG|RS|SC|V)[0-9]{2}(?:, )?)+): (.+)$`)
	// caseWithin finds an id within a name, where no boundary of words need be.
	caseWithin = regexp.MustCompile(`(?:AC|AG|RS|SC|V)[0-9]{2}`)
	// caseRow is a row's or a subtest's name that begins with an id.
	caseRow = regexp.MustCompile(`^(?:AC|AG|RS|SC|V)[0-9]{2}[,: /]`)
	// sentenceEnd is where what a case shows ends, and the rest of the comment begins.
	sentenceEnd = regexp.MustCompile(`[.] `)
)

// shown is one row of docs/cases.md.
type shown struct{ id, says, room, test string }

// casesOf reads the cases in the comments of a file's tests.
func casesOf(file source) []shown {
	var found []shown
	for _, test := range testsOf(file) {
		for _, paragraph := range caseParagraphs(test.Doc.Text()) {
			parts := caseLine.FindStringSubmatch(paragraph)
			says := parts[2]
			if end := sentenceEnd.FindStringIndex(says); end != nil {
				says = says[:end[0]+1]
			}
			for id := range strings.SplitSeq(parts[1], ", ") {
				found = append(found, shown{id, says, file.room(), test.Name.Name})
			}
		}
	}
	return found
}

// caseParagraphs joins the lines of a comment, beginning anew where a line begins with ids, and leaves out what has none.
func caseParagraphs(comment string) []string {
	var found []string
	for line := range strings.SplitSeq(strings.TrimSpace(comment), "\n") {
		switch {
		case caseLine.MatchString(line):
			found = append(found, line)
		case len(found) > 0 && line != "":
			found[len(found)-1] += " " + line
		}
	}
	return found
}

// testsOf are the functions of a file that go test runs.
func testsOf(file source) []*ast.FuncDecl {
	var found []*ast.FuncDecl
	for _, declaration := range file.tree.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if ok && function.Recv == nil && strings.HasSuffix(file.file, "_test.go") &&
			slices.ContainsFunc([]string{"Test", "Fuzz", "Benchmark"}, func(kind string) bool { return strings.HasPrefix(function.Name.Name, kind) }) {
			found = append(found, function)
		}
	}
	return found
}

// named complains about tests, their rows and subtests that are named by the id of a case.
func named(file source) []string {
	var complaints []string
	for _, test := range testsOf(file) {
		if id := caseWithin.FindString(test.Name.Name); id != "" {
			complaints = append(complaints, file.complain(test, "%s is named by %s: say what it shows, and the id in its comment", test.Name.Name, id))
		}
		ast.Inspect(test, func(node ast.Node) bool {
			literal, ok := node.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			if text, _ := strconv.Unquote(literal.Value); caseRow.MatchString(text) {
				complaints = append(complaints, file.complain(literal, "%q begins with a case's id: it stands in the test's comment", text))
			}
			return true
		})
	}
	return complaints
}

// unlisted complains about ids in comments of tests that no comment above a test begins with: nobody would find them.
func unlisted(file source, listed map[string]bool) []string {
	var complaints []string
	if !strings.HasSuffix(file.file, "_test.go") {
		return nil
	}
	for _, comment := range file.tree.Comments {
		for _, id := range caseID.FindAllString(comment.Text(), -1) {
			if !listed[id] {
				complaints = append(complaints, file.complain(comment, "no test's comment begins with case %s", id))
			}
		}
	}
	return complaints
}

// table is docs/cases.md.
func table(cases []shown) string {
	var text strings.Builder
	text.WriteString("# Cases\n\nWhat can go wrong, and the test that shows what becomes of it. Made of the comments of the tests by `make generate`.\n")
	for _, register := range registers {
		fmt.Fprintf(&text, "\n## %s\n\n%s\n\n| case | what the test shows | test |\n|---|---|---|\n", register.letters, register.about)
		for _, one := range cases {
			if strings.TrimRight(one.id, "0123456789") == register.letters {
				fmt.Fprintf(&text, "| %s | %s | `%s` in `%s` |\n", one.id, strings.ReplaceAll(one.says, "|", `\|`), one.test, one.room)
			}
		}
	}
	return text.String()
}

// Red when a case comes, goes or changes its words without `make generate`.
func TestCasesAreListed(t *testing.T) {
	files := sources(t)
	var cases []shown
	listed := map[string]bool{}
	for _, file := range files {
		for _, one := range casesOf(file) {
			cases = append(cases, one)
			listed[one.id] = true
		}
	}
	slices.SortStableFunc(cases, func(a, b shown) int {
		return strings.Compare(a.id+" "+a.room+" "+a.test, b.id+" "+b.room+" "+b.test)
	})
	for _, file := range files {
		for _, complaint := range slices.Concat(named(file), unlisted(file, listed)) {
			t.Error(complaint)
		}
	}
	golden.Match(t, filepath.Join(checkout(t), "docs", "cases.md"), table(cases))
}

func TestCasesAreRead(t *testing.T) {
	file := snippet(t, "pkg/x/x_test.go", `package x
// AC40, RS05: What is told ends
// here. Red when it does not.
// V01: Another. And more.
func TestX(t *testing.T) {}
// None: no case.
func TestY(t *testing.T) {}
// SC01: of no test.
func helper() {}
`)
	want := []shown{
		{"AC40", "What is told ends here.", "pkg/x", "TestX"}, {"RS05", "What is told ends here.", "pkg/x", "TestX"},
		{"V01", "Another.", "pkg/x", "TestX"},
	}
	if diff := cmp.Diff(want, casesOf(file), cmp.AllowUnexported(shown{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := unlisted(file, map[string]bool{"AC40": true, "RS05": true, "V01": true}); len(got) != 1 || !strings.Contains(got[0], "SC01") {
		t.Errorf("got %q, expected a complaint about SC01", got)
	}
	for code, count := range map[string]int{
		"func TestAC40Objects(t *testing.T) {}":                             1,
		"func TestObjectsV14(t *testing.T) {}":                              1,
		"func FuzzRS05(f *testing.F) {}":                                    1,
		`func TestX(t *testing.T) { t.Run("AC40: x", nil) }`:                1,
		"var rows = []string{}\nfunc TestX(t *testing.T) { _ = \"V14 x\" }": 1,
		`func TestX(t *testing.T) { t.Run("TLS", nil) }`:                    0,
		`func helperV14() {}`:                                               0,
	} {
		if got := named(snippet(t, "pkg/x/x_test.go", "package x\n"+code)); len(got) != count {
			t.Errorf("%s: got %q, expected %d complaints", code, got, count)
		}
	}
}
