package laws

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/trellis-addons/trellis/test/binaries"
)

const (
	module = "github.com/trellis-addons/trellis"
	// kinds is the folder, and the module below ours, that others import without the product.
	kinds = "apis"
)

// source is one parsed Go file of the project.
type source struct {
	// file is the slash-separated path below the checkout.
	file  string
	tree  *ast.File
	files *token.FileSet
	lines int
}

// pkg is the folder of the file.
func (s source) pkg() string { return path.Dir(s.file) }

// isTest says whether the file belongs to tests: as one of them, or in a kit for them such as httptest.
func (s source) isTest() bool { return strings.HasSuffix(s.file, "_test.go") || isKit(s.pkg()) }

// isKit says whether a folder holds a kit for tests.
func isKit(folder string) bool { return strings.HasSuffix(folder, "test") }

// isProduct says whether the file is part of what users run.
func (s source) isProduct() bool {
	return !s.isTest() && !strings.HasPrefix(s.file, "test/") && !strings.HasPrefix(s.file, "hack/")
}

func (s source) isGenerated() bool { return ast.IsGenerated(s.tree) }

// complain makes a complaint about a place in the file.
func (s source) complain(place ast.Node, format string, arguments ...any) string {
	return fmt.Sprintf("%s:%d: %s", s.file, s.files.Position(place.Pos()).Line, fmt.Sprintf(format, arguments...))
}

// imports lists the import paths of the file.
func (s source) imports() map[string]*ast.ImportSpec {
	found := map[string]*ast.ImportSpec{}
	for _, spec := range s.tree.Imports {
		if name, err := strconv.Unquote(spec.Path.Value); err == nil {
			found[name] = spec
		}
	}
	return found
}

func parse(file string, text []byte) (source, error) {
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, file, text, parser.ParseComments|parser.SkipObjectResolution)
	return source{file: file, tree: tree, files: files, lines: strings.Count(string(text), "\n")}, err
}

// parseFile reads and parses a file outside of the checkout.
func parseFile(name string) (source, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return source{}, err
	}
	return parse(filepath.ToSlash(name), text)
}

// snippet parses code that a check is tried on.
func snippet(t *testing.T, file, text string) source {
	t.Helper()
	parsed, err := parse(file, []byte(text))
	if err != nil {
		t.Fatalf("parsing %q: %v", text, err)
	}
	return parsed
}

func checkout(t *testing.T) string {
	t.Helper()
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// sources parses every Go file of the checkout, whatever its build tags. Hidden folders, testdata and those with a go.mod
// of their own, save for that of the kinds, are left out.
func sources(t *testing.T) []source {
	t.Helper()
	root := checkout(t)
	var all []source
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name != root && name != filepath.Join(root, kinds) && foreign(name) {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		parsed, err := parse(filepath.ToSlash(relative), text)
		all = append(all, parsed)
		return err
	})
	if err != nil {
		t.Fatalf("reading the checkout: %v", err)
	}
	if len(all) < 50 {
		t.Fatalf("only %d Go files found below %q", len(all), root)
	}
	return all
}

func foreign(folder string) bool {
	base := filepath.Base(folder)
	if strings.HasPrefix(base, ".") || base == "testdata" || base == "bin" {
		return true
	}
	_, err := os.Stat(filepath.Join(folder, "go.mod"))
	return err == nil
}

// report tells all complaints of a check over the project's files.
func report(t *testing.T, check func(source) []string) {
	t.Helper()
	for _, file := range sources(t) {
		for _, complaint := range check(file) {
			t.Error(complaint)
		}
	}
}

// law is wrong code and what must be said about it; "" for right code.
type law struct {
	why, file, code, says string
}

// catches tries a check on right and wrong code.
func catches(t *testing.T, check func(source) []string, laws []law) {
	t.Helper()
	for _, law := range laws {
		got := strings.Join(check(snippet(t, law.file, law.code)), "\n")
		if law.says == "" && got != "" {
			t.Errorf("%s: complains about right code: %s", law.why, got)
		}
		if !strings.Contains(got, law.says) {
			t.Errorf("%s: got %q, expected a complaint with %q", law.why, got, law.says)
		}
	}
}
