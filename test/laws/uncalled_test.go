package laws

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

// calledFromOutside are methods that Go's library and Kubernetes' libraries call on what they are given.
var calledFromOutside = []string{
	"Error", "Unwrap", "Is", "As", "String", "Format", "Set", "Type", "MarshalText", "UnmarshalText", "MarshalJSON", "UnmarshalJSON",
	"Len", "Less", "Swap", "Push", "Pop", "Read", "Write", "Close", "Open", "Stat", "ReadDir", "ReadFile", "Seek", "Sync",
	"RoundTrip", "WrappedRoundTripper", "Temporary", "ServeHTTP", "Handle", "Collect", "Describe", "Start", "NeedLeaderElection",
	"Reconcile", "GetCertificate", "ModTime", // of http, net, prometheus, controller-runtime, tls and fs
	"AddRateLimited", "ShutDownWithDrain", "ShuttingDown", "Touch", // of client-go's workqueue
	"GetClientFor", // of Helm's engine, for lookup
	"ConfigHash",   // of templates, as KKP has it
}

// awaited are functions without a caller yet, by folder and name, with what they wait for.
var awaited = map[string]string{
	"pkg/fetch/store.Stats": "tests of other rooms count what a store does by it; its metrics have the same numbers for operators",
}

// export is an exported function, or a method of any type: something may embed the type, or return it as an interface.
type export struct {
	file     source
	function *ast.FuncDecl
}

func (e export) isMethod() bool { return e.function.Recv != nil }

// exports are the exported functions of the product's files. Kinds are for others too.
func exports(files []source) []export {
	var found []export
	for _, file := range files {
		if !file.isProduct() || file.isGenerated() || within(file.room(), []string{kinds}) {
			continue
		}
		for _, declaration := range file.tree.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if ok && function.Name.IsExported() {
				found = append(found, export{file, function})
			}
		}
	}
	return found
}

// uses are the names that the product's files use.
type uses struct {
	// selected are names after a dot, whatever is before it, and those of interfaces' methods.
	selected map[string]bool
	// within are names that stand for themselves, by folder.
	within map[string]map[string]bool
	// of are names of packages, by folder.
	of map[string]map[string]bool
}

func (u *uses) add(in map[string]map[string]bool, folder, name string) {
	if in[folder] == nil {
		in[folder] = map[string]bool{}
	}
	in[folder][name] = true
}

// packageNames are the folders of our packages that a file imports, by the names that it has for them.
func packageNames(file source, names map[string]string) map[string]string {
	found := map[string]string{}
	for imported, spec := range file.imports() {
		folder, ours := strings.CutPrefix(imported, module+"/")
		switch {
		case !ours:
		case spec.Name != nil:
			found[spec.Name.Name] = folder
		case names[folder] != "":
			found[names[folder]] = folder
		default:
			found[path.Base(folder)] = folder
		}
	}
	return found
}

func usesOf(files []source) *uses {
	names := map[string]string{}
	for _, file := range files {
		if !file.isTest() {
			names[file.room()] = file.tree.Name.Name
		}
	}
	found := &uses{selected: map[string]bool{}, within: map[string]map[string]bool{}, of: map[string]map[string]bool{}}
	for _, file := range files {
		if file.isProduct() {
			found.read(file, packageNames(file, names))
		}
	}
	return found
}

func (u *uses) read(file source, packages map[string]string) {
	declared := map[token.Pos]bool{}
	ast.Inspect(file.tree, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncDecl:
			declared[node.Name.Pos()] = true
		case *ast.InterfaceType:
			for _, method := range node.Methods.List {
				for _, name := range method.Names {
					u.selected[name.Name] = true
				}
			}
		case *ast.SelectorExpr:
			u.selected[node.Sel.Name] = true
			declared[node.Sel.Pos()] = true
			if owner, ok := node.X.(*ast.Ident); ok && packages[owner.Name] != "" {
				u.add(u.of, packages[owner.Name], node.Sel.Name)
			}
		case *ast.Ident:
			if !declared[node.Pos()] {
				u.add(u.within, file.room(), node.Name)
			}
		}
		return true
	})
}

// uncalled complains about exported functions that nothing of the product calls: only their tests keep them.
func uncalled(files []source) []string {
	used := usesOf(files)
	var complaints []string
	for _, one := range exports(files) {
		name, folder := one.function.Name.Name, one.file.room()
		called := used.within[folder][name] || used.of[folder][name]
		if one.isMethod() {
			called = used.selected[name] || slices.Contains(calledFromOutside, name)
		}
		if !called && awaited[folder+"."+name] == "" {
			complaints = append(complaints, one.file.complain(one.function, "nothing of the product calls %s: delete it, or let its tests have it", name))
		}
	}
	return complaints
}

func TestEveryExportedFunctionHasACaller(t *testing.T) {
	files := sources(t)
	if found := len(exports(files)); found < 500 {
		t.Fatalf("only %d exported functions found", found)
	}
	for _, complaint := range uncalled(files) {
		t.Error(complaint)
	}
	for name := range awaited {
		folder, function, _ := strings.Cut(name, ".")
		if !slices.ContainsFunc(exports(files), func(one export) bool {
			return one.file.room() == folder && one.function.Name.Name == function
		}) {
			t.Errorf("%s is not there any more: take it off the list", name)
		}
	}
}

func TestUncalledCatches(t *testing.T) {
	const declared = "package x\nfunc New() {}\nfunc other() {}\n"
	imports := func(name string) string { return "import " + name + "\"" + module + "/pkg/x\"\n" }
	for _, test := range []struct {
		why   string
		files map[string]string
		says  string
	}{
		{"nobody calls it", map[string]string{"pkg/x/a.go": declared}, "nothing of the product calls New"},
		{"its tests do", map[string]string{"pkg/x/a.go": declared, "pkg/x/a_test.go": "package x\nvar _ = New"}, "calls New"},
		{"tests of others do", map[string]string{"pkg/x/a.go": declared, "test/y/a.go": "package y\n" + imports("") + "var _ = x.New"}, "calls New"},
		{"a function of that name is called", map[string]string{
			"pkg/x/a.go": declared, "pkg/y/a.go": "package y\nfunc f() { z.New() }"}, "calls New"},
		{"by itself alone", map[string]string{"pkg/x/a.go": "package x\nfunc New() { other() }"}, "calls New"},
		{"its own room does", map[string]string{"pkg/x/a.go": declared, "pkg/x/b.go": "package x\nvar _ = New"}, ""},
		{"another room does", map[string]string{"pkg/x/a.go": declared, "cmd/y/a.go": "package y\n" + imports("") + "var _ = x.New"}, ""},
		{"by another name", map[string]string{"pkg/x/a.go": declared, "cmd/y/a.go": "package y\n" + imports("z ") + "var _ = z.New"}, ""},
		{"a kit for tests", map[string]string{"pkg/x/xtest/a.go": declared}, ""},
		{"a kind, which others import", map[string]string{"apis/kubermatic/v1/a.go": declared}, ""},
		{"a method that nobody calls", map[string]string{"pkg/x/a.go": "package x\nfunc (y) Do() {}"}, "calls Do"},
		{"a method that is called", map[string]string{"pkg/x/a.go": "package x\nfunc (y) Do() {}", "pkg/y/a.go": "package y\nvar _ = z.Do"}, ""},
		{"a method of an interface", map[string]string{"pkg/x/a.go": "package x\nfunc (y) Do() {}\ntype z interface{ Do() }"}, ""},
		{"a method that the library calls", map[string]string{"pkg/x/a.go": "package x\nfunc (y) Error() string { return \"\" }"}, ""},
	} {
		var files []source
		for name, code := range test.files {
			files = append(files, snippet(t, name, code))
		}
		got := strings.Join(uncalled(files), "\n")
		if test.says == "" && got != "" || !strings.Contains(got, test.says) {
			t.Errorf("%s: got %q, want %q", test.why, got, test.says)
		}
	}
}
