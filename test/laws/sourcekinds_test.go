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
	if !file.isProduct() || knowsSourceKinds(file.room()) {
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

func TestKindsOfSourceAreKnownInTheirRoomsOnly(t *testing.T) { report(t, sourceKinds) }

func TestSourceKindsCatch(t *testing.T) {
	code := func(body string) string { return "package x\nfunc f() {" + body + "}" }
	catches(t, sourceKinds, []law{
		{"a kind knows itself", "pkg/fetch/git/a.go", code("_ = kind.(*v1.GitSource)"), ""},
		{"rules of the API", "pkg/catalogue/a.go", code("_ = version.Source.Docker"), ""},
		{"another Helm", "pkg/revision/a.go", code("_ = record.Helm"), ""},
		{"a kind by its type", "pkg/controllers/addon/a.go", code("_ = &v1.HelmSource{}"), "HelmSource is for the room"},
		{"a kind by its field", "pkg/controllers/addon/a.go", code("_ = source.Git"), "Git is for the room"},
		{"of a version", "pkg/webhook/a.go", code("_ = version.Source.Docker"), "Docker is for the room"},
		{"the contract", "pkg/fetch/a.go", code("_ = &v1.GitSource{}"), "GitSource is for the room"},
		{"the store", "pkg/fetch/store/a.go", code("_ = &v1.GitSource{}"), "GitSource is for the room"},
	})
}
