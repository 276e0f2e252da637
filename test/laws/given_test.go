package laws

import (
	"go/ast"
	"strings"
	"testing"
)

// copies complains about what tests write out although test/given or test/expect has a function for it: objects that test/given makes,
// and functions that only pass on their parameters to test/expect.
func copies(file source) []string {
	if !file.isTest() && !strings.HasPrefix(file.pkg(), "test/") || file.pkg() == "test/given" {
		return nil
	}
	var complaints []string
	ast.Inspect(file.tree, func(node ast.Node) bool {
		switch found := node.(type) {
		case *ast.CompositeLit:
			if word := functionFor(found); word != "" {
				complaints = append(complaints, file.complain(found, "an object is written out: take given.%s", word))
			}
		case *ast.FuncDecl:
			if word := passesOn(found); word != "" {
				complaints = append(complaints, file.complain(found, "%s only passes on its parameters: call %s", found.Name.Name, word))
			}
		}
		return true
	})
	return complaints
}

// functionFor is the function of test/given that makes an object, "" for none.
func functionFor(object *ast.CompositeLit) string {
	about, spec := literalAt(object, "ObjectMeta"), literalAt(object, "Spec")
	if about == nil {
		return ""
	}
	switch kindOf(object) {
	case "AddonInstallation":
		if spec != nil && valueAt(spec, "AddonRef") != nil {
			return "Installation"
		}
	case "AddonCatalogue":
		if labels := literalAt(about, "Labels"); labels != nil && spec != nil && names(labels, "RoleMerged") {
			return "Merged"
		}
	case "Secret":
		name, isText := valueAt(about, "Name").(*ast.BasicLit)
		if isText && name.Value == `"internal-admin-kubeconfig"` && valueAt(object, "Data") != nil {
			return "Kubeconfig"
		}
	}
	return ""
}

// kindOf is the name of a literal's type, without its package.
func kindOf(literal *ast.CompositeLit) string {
	if of, ok := literal.Type.(*ast.SelectorExpr); ok {
		return of.Sel.Name
	}
	return ""
}

// valueAt is a field of a literal, nil where it has none of that name.
func valueAt(literal *ast.CompositeLit, name string) ast.Expr {
	for _, element := range literal.Elts {
		if field, ok := element.(*ast.KeyValueExpr); ok {
			if key, isName := field.Key.(*ast.Ident); isName && key.Name == name {
				return field.Value
			}
		}
	}
	return nil
}

func literalAt(literal *ast.CompositeLit, name string) *ast.CompositeLit {
	found, _ := valueAt(literal, name).(*ast.CompositeLit)
	return found
}

// names says whether something is named below a node.
func names(below ast.Node, name string) bool {
	found := false
	ast.Inspect(below, func(node ast.Node) bool {
		one, ok := node.(*ast.Ident)
		found = found || ok && one.Name == name
		return !found
	})
	return found
}

// passesOn is the word of test/expect that a function calls with its own parameters and no more, "" for none.
func passesOn(function *ast.FuncDecl) string {
	if function.Recv != nil || function.Body == nil {
		return ""
	}
	statements := function.Body.List
	if len(statements) == 2 && isHelper(statements[0]) {
		statements = statements[1:]
	}
	if len(statements) != 1 {
		return ""
	}
	var call *ast.CallExpr
	switch one := statements[0].(type) {
	case *ast.ExprStmt:
		call, _ = one.X.(*ast.CallExpr)
	case *ast.ReturnStmt:
		if len(one.Results) == 1 {
			call, _ = one.Results[0].(*ast.CallExpr)
		}
	}
	if call == nil || !strings.HasPrefix(selector(call.Fun), "expect.") {
		return ""
	}
	var parameters []string
	for _, field := range function.Type.Params.List {
		for _, name := range field.Names {
			parameters = append(parameters, name.Name)
		}
	}
	if len(call.Args) != len(parameters) {
		return ""
	}
	for i, argument := range call.Args {
		if name, ok := argument.(*ast.Ident); !ok || name.Name != parameters[i] {
			return ""
		}
	}
	return selector(call.Fun)
}

// isHelper knows t.Helper().
func isHelper(statement ast.Stmt) bool {
	expression, ok := statement.(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := expression.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	return ok && method.Sel.Name == "Helper"
}

func TestObjectsOfTestsAreMadeInOnePlace(t *testing.T) { report(t, copies) }

func TestCopiesCatch(t *testing.T) {
	object := func(literal string) string { return "package x\nvar x = " + literal }
	const secret = `corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "internal-admin-kubeconfig"}`
	const merged = `v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1.LabelRole: v1.RoleMerged}}`
	const installationRequest = `v1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Name: "a"}`
	function := func(parameters, body string) string {
		return "package x\nfunc f(" + parameters + ") {\nt.Helper()\n" + body + "\n}"
	}
	catches(t, copies, []law{
		{"a wish", "pkg/x/a_test.go", object(installationRequest + ", Spec: v1.AddonInstallationSpec{AddonRef: r}}"), "given.Installation"},
		{"a wish of a kit", "test/x/a.go", object("&" + installationRequest + ", Spec: v1.AddonInstallationSpec{AddonRef: r}}"), "given.Installation"},
		{"an installation to read", "pkg/x/a_test.go", object(installationRequest + "}"), ""},
		{"a merged catalogue", "pkg/x/a_test.go", object(merged + ", Spec: v1.AddonCatalogueSpec{}}"), "given.Merged"},
		{"a kubeconfig", "pkg/x/a_test.go", object(secret + ", Data: data}"), "given.Kubeconfig"},
		{"a kubeconfig to delete", "pkg/x/a_test.go", object(secret + "}"), ""},
		{"the product", "pkg/x/a.go", object(installationRequest + ", Spec: v1.AddonInstallationSpec{AddonRef: r}}"), ""},
		{"test/given", "test/given/a.go", object(installationRequest + ", Spec: v1.AddonInstallationSpec{AddonRef: r}}"), ""},
		{"a function under another name", "pkg/x/a_test.go", function("t T, c C, o O", "expect.Create(t, c, o)"), "call expect.Create"},
		{"a function for one client", "pkg/x/a_test.go", function("t T, o O", "expect.Create(t, seed, o)"), ""},
		{"more than one call", "pkg/x/a_test.go", function("t T, c C, o O", "expect.Create(t, c, o)\nexpect.Gone(t, c, o)"), ""},
	})
}
