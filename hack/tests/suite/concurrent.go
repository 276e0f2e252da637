package suite

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// guards are packages that are imported by code which shares memory between goroutines.
var guards = []string{"sync", "sync/atomic", "golang.org/x/sync/errgroup"}

// Race is how `make test` uses the race detector on a package.
type Race struct {
	// Concurrent packages run with it.
	Concurrent bool
	// Heavy are the package's tests that call long.Heavy: they run without it, in a call of their own.
	Heavy []string
}

// raceOf reads a package's sources.
func raceOf(checkout fs.FS, p Package) (race Race, err error) {
	if race.Concurrent, err = IsConcurrent(checkout, p); err != nil || !race.Concurrent {
		return race, err
	}
	for _, name := range p.TestFiles {
		tree, err := parse(checkout, path.Join(p.Folder, name))
		if err != nil {
			return race, err
		}
		race.Heavy = append(race.Heavy, heavyTests(tree)...)
	}
	for _, name := range race.Heavy {
		if !strings.HasPrefix(name, "Test") {
			return race, fmt.Errorf("%s of %q calls long.Heavy: call it in the test itself", name, p.Folder)
		}
	}
	slices.Sort(race.Heavy)
	return race, nil
}

// heavyTests are the tests of a file that call long.Heavy.
func heavyTests(tree *ast.File) (names []string) {
	for _, one := range tree.Decls {
		function, isFunction := one.(*ast.FuncDecl)
		if !isFunction || function.Body == nil {
			continue
		}
		ast.Inspect(function.Body, func(node ast.Node) bool {
			selector, isSelector := node.(*ast.SelectorExpr)
			if !isSelector {
				return true
			}
			if of, isName := selector.X.(*ast.Ident); isName && of.Name == "long" && selector.Sel.Name == "Heavy" {
				names = append(names, function.Name.Name)
			}
			return true
		})
	}
	return names
}

// IsConcurrent says whether a package, or its tests, start goroutines, or use channels, locks or atomics. It is read
// from the source, so that no list has to be kept: a `go` statement, a channel's type, or an import of sync,
// sync/atomic or errgroup. Such packages are the ones in which the race detector can find something of their own;
// code of others that runs in goroutines is tried by the tests of the packages that start these.
func IsConcurrent(checkout fs.FS, p Package) (bool, error) {
	for _, name := range slices.Concat(p.Files, p.TestFiles) {
		tree, err := parse(checkout, path.Join(p.Folder, name))
		if err != nil {
			return false, err
		}
		if hasConcurrency(tree) {
			return true, nil
		}
	}
	return false, nil
}

func parse(checkout fs.FS, file string) (*ast.File, error) {
	text, err := fs.ReadFile(checkout, file)
	if err != nil {
		return nil, err
	}
	tree, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parsing %q: %w", file, err)
	}
	return tree, nil
}

func hasConcurrency(tree *ast.File) bool {
	for _, spec := range tree.Imports {
		if name, err := strconv.Unquote(spec.Path.Value); err == nil && slices.Contains(guards, name) {
			return true
		}
	}
	found := false
	ast.Inspect(tree, func(node ast.Node) bool {
		switch node.(type) {
		case *ast.GoStmt, *ast.ChanType:
			found = true
		}
		return !found
	})
	return found
}
