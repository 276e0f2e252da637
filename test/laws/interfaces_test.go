package laws

import (
	"go/ast"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mostMethods is how many methods an interface may ask for, those of interfaces that it embeds among them.
const mostMethods = 5

// wide are the interfaces that still ask for more, by folder and name, with what has to come first.
var wide = map[string]string{
	"pkg/controllers/addoninstallation.Records": "who wires hands over one value; pkg/install/installer asks for reading and writing apart",
}

// interfaces finds the interfaces of packages, ours and others'.
type interfaces struct {
	ours map[string][]source
	// folders are where others' packages lie, by import path; read is what was read of them.
	folders map[string]string
	read    map[string][]source
}

func newInterfaces(files []source, folders map[string]string) *interfaces {
	found := &interfaces{ours: map[string][]source{}, folders: folders, read: map[string][]source{}}
	for _, file := range files {
		if !file.isTest() {
			found.ours[file.pkg()] = append(found.ours[file.pkg()], file)
		}
	}
	return found
}

// packageOf gives the files of a package by its import path; none where it is not known.
func (i *interfaces) packageOf(imported string) []source {
	if folder, ours := strings.CutPrefix(imported, module+"/"); ours {
		return i.ours[folder]
	}
	if known, ok := i.read[imported]; ok || i.folders[imported] == "" {
		return known
	}
	names, _ := filepath.Glob(filepath.Join(i.folders[imported], "*.go")) // the pattern is a good one
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if file, err := parseFile(name); err == nil {
			i.read[imported] = append(i.read[imported], file)
		}
	}
	return i.read[imported]
}

// methods adds the names of the methods that an interface of a file asks for.
func (i *interfaces) methods(file source, of ast.Expr, beside []source, found map[string]bool) {
	switch of := of.(type) {
	case *ast.InterfaceType:
		if isConstraint(of) {
			return
		}
		for _, field := range of.Methods.List {
			for _, name := range field.Names {
				found[name.Name] = true
			}
			if len(field.Names) == 0 {
				i.methods(file, field.Type, beside, found)
			}
		}
	case *ast.IndexExpr:
		i.methods(file, of.X, beside, found)
	case *ast.IndexListExpr:
		i.methods(file, of.X, beside, found)
	case *ast.Ident:
		if of.Name == "error" {
			found["Error"] = true
		}
		i.named(of.Name, beside, found)
	case *ast.SelectorExpr:
		if owner, ok := of.X.(*ast.Ident); ok {
			i.named(of.Sel.Name, i.packageOf(importedAs(file, owner.Name)), found)
		}
	}
}

// isConstraint says whether an interface is about types: nobody implements it, so that it may ask for anything.
func isConstraint(of *ast.InterfaceType) bool {
	return slices.ContainsFunc(of.Methods.List, func(field *ast.Field) bool {
		switch field.Type.(type) {
		case *ast.BinaryExpr, *ast.UnaryExpr, *ast.StarExpr, *ast.ArrayType, *ast.MapType:
			return true
		}
		return false
	})
}

// named adds the methods of an interface that one of the files declares.
func (i *interfaces) named(name string, files []source, found map[string]bool) {
	for _, file := range files {
		for _, declaration := range file.tree.Decls {
			types, ok := declaration.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range types.Specs {
				if declared, ok := spec.(*ast.TypeSpec); ok && declared.Name.Name == name {
					i.methods(file, declared.Type, files, found)
				}
			}
		}
	}
}

// importedAs is the path of the package that a file calls by a name.
func importedAs(file source, name string) string {
	for imported, spec := range file.imports() {
		if spec.Name != nil && spec.Name.Name == name || spec.Name == nil && path.Base(imported) == name {
			return imported
		}
	}
	return ""
}

// width complains about interfaces that ask for too much.
func (i *interfaces) width(file source) []string {
	if file.isGenerated() {
		return nil
	}
	var complaints []string
	name := ""
	ast.Inspect(file.tree, func(node ast.Node) bool {
		if spec, ok := node.(*ast.TypeSpec); ok {
			name = file.pkg() + "." + spec.Name.Name
		}
		declared, ok := node.(*ast.InterfaceType)
		if !ok {
			return true
		}
		methods := map[string]bool{}
		i.methods(file, declared, i.ours[file.pkg()], methods)
		switch {
		case len(methods) <= mostMethods && wide[name] != "":
			complaints = append(complaints, file.complain(node, "%s is narrow by now: take it off the list of wide ones", name))
		case len(methods) > mostMethods && wide[name] == "":
			complaints = append(complaints, file.complain(node, "the interface has %d methods, %d at most", len(methods), mostMethods))
		}
		return true
	})
	return complaints
}

func TestInterfacesAreNarrow(t *testing.T) {
	command := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{.ImportPath}} {{.Dir}}", "./...")
	command.Dir = checkout(t)
	text, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	folders := map[string]string{}
	for line := range strings.Lines(string(text)) {
		imported, folder, _ := strings.Cut(strings.TrimSpace(line), " ")
		folders[imported] = folder
	}
	files := sources(t)
	all := newInterfaces(files, folders)
	reader := map[string]bool{}
	if all.named("Reader", all.packageOf("sigs.k8s.io/controller-runtime/pkg/client"), reader); len(reader) != 2 {
		t.Errorf("client.Reader has methods %v: this test reads the wrong files", reader)
	}
	for _, file := range files {
		for _, complaint := range all.width(file) {
			t.Error(complaint)
		}
	}
}

func TestInterfaceWidthCatches(t *testing.T) {
	other := snippet(t, "pkg/y/a.go", "package y\ntype Four interface { A(); B(); C(); D() }")
	catches(t, func(file source) []string {
		return newInterfaces([]source{file, other}, nil).width(file)
	}, []law{
		{"five", "pkg/x/a.go", "package x\ntype x interface { a(); b(); c(); d(); e() }", ""},
		{"six", "pkg/x/a.go", "package x\ntype x interface { a(); b(); c(); d(); e(); f() }", "6 methods"},
		{"three and three that are embedded", "pkg/x/a.go",
			"package x\ntype x interface { a(); b(); c(); y }\ntype y interface { d(); e(); f() }", "6 methods"},
		{"the same from two", "pkg/x/a.go",
			"package x\ntype x interface { y; z }\ntype y interface { a(); b(); c() }\ntype z interface { a(); b(); c() }", ""},
		{"another room's", "pkg/x/a.go", "package x\nimport \"" + module + "/pkg/y\"\ntype x interface { y.Four; e(); f() }", "6 methods"},
		{"by another name", "pkg/x/a.go", "package x\nimport z \"" + module + "/pkg/y\"\ntype x interface { z.Four; e(); f() }", "6 methods"},
		{"of types", "pkg/x/a.go",
			"package x\ntype x[T any] interface { y[T]; d(); e(); f() }\ntype y[T any] interface { a(T); b(); c() }", "6 methods"},
		{"a constraint on types", "pkg/x/a.go", "package x\ntype x interface { ~int | ~string; a(); b(); c(); d(); e(); f() }", ""},
		{"one that is on the list no more", "pkg/controllers/addoninstallation/a.go", "package x\ntype Records interface { a() }", "narrow by now"},
	})
}
