package laws

import (
	"go/ast"
	"reflect"
	"slices"
	"strings"
	"testing"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// knowsSourceKinds says whether a folder may know the kinds of source: the API, its rules, and the
// rooms of the kinds themselves.
func knowsSourceKinds(folder string) bool {
	isKind := strings.HasPrefix(folder, "pkg/fetch/") && folder != "pkg/fetch/store" && !slices.Contains(foundations, folder)
	return isKind || within(folder, []string{"apis", "pkg/catalogue"})
}

// sourceKinds complains where the kinds of source are told apart: a further one would have to be
// added there.
func sourceKinds(file source) []string {
	if !file.isProduct() || knowsSourceKinds(file.pkg()) {
		return nil
	}
	var complaints []string
	complain := func(node ast.Node, name string) {
		complaints = append(complaints, file.complain(node, "%s is for the room of that kind: let fetch.Kind say what is to be known", name))
	}
	ast.Inspect(file.tree, func(node ast.Node) bool {
		selected, ok := node.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		for field := range reflect.TypeFor[v1.Source]().Fields() {
			if selected.Sel.Name == field.Type.Elem().Name() || selected.Sel.Name == field.Name && isSource(selected.X) {
				complain(node, selected.Sel.Name)
			}
		}
		return true
	})
	return complaints
}

// isSource says whether an expression reads as a source of a catalogue.
func isSource(expression ast.Expr) bool {
	switch of := expression.(type) {
	case *ast.Ident:
		return strings.EqualFold(of.Name, "source")
	case *ast.SelectorExpr:
		return of.Sel.Name == "Source"
	}
	return false
}

// methods complains where methods of rendering are told apart: a further one would have to be added there.
func methods(file source) []string {
	if !file.isProduct() || within(file.pkg(), []string{"apis", "pkg/catalogue", "cmd/wiring"}) {
		return nil
	}
	var complaints []string
	ast.Inspect(file.tree, func(node ast.Node) bool {
		if name, ok := node.(*ast.SelectorExpr); ok && slices.Contains([]string{"MethodHelm", "MethodGoTemplate"}, name.Sel.Name) {
			complaints = append(complaints, file.complain(node, "%s is one method of several: let catalogue.Traits say what is to be known", name.Sel.Name))
		}
		return true
	})
	return complaints
}

func TestMethodsAreDistinguishedByTheirTraits(t *testing.T) { report(t, methods) }

func TestMethodsCatch(t *testing.T) {
	code := func(body string) string { return "package x\nfunc f() {" + body + "}" }
	catches(t, methods, []law{
		{"the table of traits", "pkg/catalogue/a.go", code("_ = v1.MethodHelm"), ""},
		{"a trait", "pkg/install/rendering/a.go", code("_ = catalogue.TraitsOf(method).IsChart"), ""},
		{"a method by its name", "pkg/install/rendering/a.go", code("_ = method == v1.MethodHelm"), "MethodHelm is one method of several"},
		{"the other one", "pkg/serve/webhook/a.go", code("_ = v1.MethodGoTemplate"), "MethodGoTemplate is one method of several"},
	})
}

func TestKindsOfSourceAreKnownInTheirPackagesOnly(t *testing.T) { report(t, sourceKinds) }

func TestSourceKindsCatch(t *testing.T) {
	code := func(body string) string { return "package x\nfunc f() {" + body + "}" }
	catches(t, sourceKinds, []law{
		{"a kind knows itself", "pkg/fetch/git/a.go", code("_ = kind.(*v1.GitSource)"), ""},
		{"rules of the API", "pkg/catalogue/a.go", code("_ = version.Source.Docker"), ""},
		{"another Helm", "pkg/install/revision/a.go", code("_ = record.Helm"), ""},
		{"a kind by its type", "pkg/controllers/addon/a.go", code("_ = &v1.HelmSource{}"), "HelmSource is for the room"},
		{"a kind by its field", "pkg/controllers/addon/a.go", code("_ = source.Git"), "Git is for the room"},
		{"of a version", "pkg/serve/webhook/a.go", code("_ = version.Source.Docker"), "Docker is for the room"},
		{"the contract", "pkg/fetch/a.go", code("_ = &v1.GitSource{}"), "GitSource is for the room"},
		{"the store", "pkg/fetch/store/a.go", code("_ = &v1.GitSource{}"), "GitSource is for the room"},
	})
}
