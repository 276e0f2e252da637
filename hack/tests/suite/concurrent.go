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
)

// guards are packages that are imported by code which shares memory between goroutines.
var guards = []string{"sync", "sync/atomic", "golang.org/x/sync/errgroup"}

// IsConcurrent says whether a package, or its tests, start goroutines, or use channels, locks or atomics. It is read
// from the source, so that no list has to be kept: a `go` statement, a channel's type, or an import of sync,
// sync/atomic or errgroup. Such packages are the ones in which the race detector can find something of their own;
// code of others that runs in goroutines is tried by the tests of the packages that start these.
func IsConcurrent(checkout fs.FS, p Package) (bool, error) {
	for _, name := range slices.Concat(p.Files, p.TestFiles) {
		file := path.Join(p.Folder, name)
		text, err := fs.ReadFile(checkout, file)
		if err != nil {
			return false, err
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
		if err != nil {
			return false, fmt.Errorf("parsing %q: %w", file, err)
		}
		if hasConcurrency(tree) {
			return true, nil
		}
	}
	return false, nil
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
