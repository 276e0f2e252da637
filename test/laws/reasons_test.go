package laws

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
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

func TestEveryReasonStandsInASpecPage(t *testing.T) {
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
	files := sources(t)
	at := slices.IndexFunc(files, func(file source) bool { return file.file == "apis/kubermatic/v1/conditions.go" })
	if at < 0 {
		t.Fatal("the conditions' file is not where it was")
	}
	constants := reasons(files[at])
	if len(constants) < 50 {
		t.Fatalf("only %d constants found: this test reads the wrong file", len(constants))
	}
	for name, value := range constants {
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
