// Package suite knows the packages of this checkout and plans how `make test` runs them.
package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Module is the product's module; packages of its inner module are below Kinds.
const (
	Module = "github.com/trellis-addons/trellis"
	Kinds  = "apis"
)

// Package is one package of the checkout.
type Package struct {
	// Path is the import path.
	Path string
	// Folder is the path below the checkout, with slashes.
	Folder string
	// Files are the names of its Go files, TestFiles those of its tests.
	Files, TestFiles []string
	// Imports are the import paths of the package and of its tests.
	Imports []string
}

// HasTests says whether there is anything that go test runs.
func (p Package) HasTests() bool { return len(p.TestFiles) > 0 }

// Root is the folder, below the checkout, of the module that the package belongs to: go test runs there.
func (p Package) Root() string {
	if within(p.Folder, Kinds) {
		return Kinds
	}
	return "."
}

func within(folder, parent string) bool {
	return folder == parent || strings.HasPrefix(folder, parent+"/")
}

// List asks the go command for all packages of the checkout, those of the inner module of the kinds included.
func List(ctx context.Context, checkout string) ([]Package, error) {
	var all []Package
	for _, module := range []string{".", Kinds} {
		command := exec.CommandContext(ctx, "go", "list", "-json=ImportPath,Dir,GoFiles,CgoFiles,TestGoFiles,XTestGoFiles,"+
			"Imports,TestImports,XTestImports", "./...")
		command.Dir = filepath.Join(checkout, module)
		var complaints bytes.Buffer
		command.Stderr = &complaints
		output, err := command.Output()
		if err != nil {
			return nil, fmt.Errorf("listing packages in %q: %w\n%s", command.Dir, err, complaints.String())
		}
		found, err := decode(checkout, bytes.NewReader(output))
		if err != nil {
			return nil, fmt.Errorf("reading the packages of %q: %w", command.Dir, err)
		}
		all = append(all, found...)
	}
	return all, nil
}

func decode(checkout string, listing io.Reader) ([]Package, error) {
	var all []Package
	for decoder := json.NewDecoder(listing); ; {
		var one struct {
			ImportPath, Dir                              string
			GoFiles, CgoFiles, TestGoFiles, XTestGoFiles []string
			Imports, TestImports, XTestImports           []string
		}
		if err := decoder.Decode(&one); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		folder, err := filepath.Rel(checkout, one.Dir)
		if err != nil {
			return nil, err
		}
		all = append(all, Package{
			Path: one.ImportPath, Folder: filepath.ToSlash(folder),
			Files:     slices.Concat(one.GoFiles, one.CgoFiles),
			TestFiles: slices.Concat(one.TestGoFiles, one.XTestGoFiles),
			Imports:   slices.Concat(one.Imports, one.TestImports, one.XTestImports),
		})
	}
}

// DependsOn says which packages import one of these, by themselves or by others of the list.
func DependsOn(all []Package, roots ...string) map[string]bool {
	found := map[string]bool{}
	for _, root := range roots {
		found[root] = true
	}
	for grown := true; grown; {
		grown = false
		for _, one := range all {
			if !found[one.Path] && slices.ContainsFunc(one.Imports, func(path string) bool { return found[path] }) {
				found[one.Path], grown = true, true
			}
		}
	}
	return found
}
