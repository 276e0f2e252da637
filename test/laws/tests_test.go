package laws

import (
	"go/ast"
	"strings"
	"testing"
)

// words complains about calls of a client in tests whose error ends the test, and no more: test/expect has a word for each.
func words(file source) []string {
	var complaints []string
	ast.Inspect(file.tree, func(node ast.Node) bool {
		one, ok := node.(*ast.IfStmt)
		if ok && file.isTest() && isClientCall(one.Init) && isAnyError(one.Cond) && len(one.Body.List) == 1 && isFatal(one.Body.List[0]) {
			complaints = append(complaints, file.complain(one, "a client is asked, and an error ends the test: take the word of test/expect"))
		}
		return true
	})
	return complaints
}

// clientArguments are how many arguments methods of a client have without options.
var clientArguments = map[string]int{"Create": 2, "Update": 2, "Delete": 2, "List": 2, "Get": 3}

// isClientCall knows a call of a client by its method and arguments: the context of the test, and objects.
func isClientCall(statement ast.Stmt) bool {
	assigned, ok := statement.(*ast.AssignStmt)
	if !ok || len(assigned.Lhs) != 1 || len(assigned.Rhs) != 1 {
		return false
	}
	call, ok := assigned.Rhs[0].(*ast.CallExpr)
	if !ok {
		return false
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 || len(call.Args) != clientArguments[method.Sel.Name] || !isContext(call.Args[0]) {
		return false
	}
	if owner, isName := method.X.(*ast.Ident); isName && owner.Name == "class" { // of test/clusterapi
		return false
	}
	switch call.Args[len(call.Args)-1].(type) {
	case *ast.Ident, *ast.SelectorExpr, *ast.UnaryExpr:
		return !isSubResource(method.X)
	}
	return false
}

// isAnyError knows err != nil.
func isAnyError(condition ast.Expr) bool {
	comparison, ok := condition.(*ast.BinaryExpr)
	if !ok {
		return false
	}
	_, isName := comparison.X.(*ast.Ident)
	return isName
}

// isSubResource says whether a receiver is a subresource's client, or a value that is made in place.
func isSubResource(receiver ast.Expr) bool {
	if call, ok := receiver.(*ast.CallExpr); ok {
		method, isMethod := call.Fun.(*ast.SelectorExpr)
		return isMethod && method.Sel.Name == "SubResource"
	}
	_, inPlace := receiver.(*ast.ParenExpr)
	return inPlace
}

func isContext(argument ast.Expr) bool {
	call, ok := argument.(*ast.CallExpr)
	if !ok || len(call.Args) > 0 {
		return false
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	return ok && method.Sel.Name == "Context"
}

// isFatal knows Fatal(err).
func isFatal(statement ast.Stmt) bool {
	expression, ok := statement.(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := expression.X.(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return false
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	argument, isName := call.Args[0].(*ast.Ident)
	return ok && method.Sel.Name == "Fatal" && isName && argument.Name == "err"
}

func TestTestsHaveNamesInWords(t *testing.T) { report(t, words) }

func TestWordsCatch(t *testing.T) {
	code := func(call, then string) string {
		return "package x\nfunc f() {\nif err := " + call + "; err != nil {\n" + then + "\n}\n}"
	}
	catches(t, words, []law{
		{"an object is made", "pkg/x/a_test.go", code("w.seed.Create(w.t.Context(), object)", "w.t.Fatal(err)"), "test/expect"},
		{"an object is read", "pkg/x/a_test.go", code("c.Get(t.Context(), key, &found)", "t.Fatal(err)"), "test/expect"},
		{"a status is written", "pkg/x/a_test.go", code("c.Status().Update(t.Context(), found)", "t.Fatal(err)"), "test/expect"},
		{"of a product's context", "pkg/x/a_test.go", code("c.Create(ctx, object)", "t.Fatal(err)"), ""},
		{"more is told", "pkg/x/a_test.go", code("c.Create(t.Context(), object)", "t.Fatalf(`again: %v`, err)"), ""},
		{"a Class", "pkg/x/a_test.go", code("class.Create(t.Context(), c)", "t.Fatal(err)"), ""},
		{"the product", "pkg/x/a.go", code("c.Create(t.Context(), object)", "t.Fatal(err)"), ""},
	})
}

// conflicts complains about tests that give up after some conflicts: controllers write the same objects, and more slowly than that.
func conflicts(file source) []string {
	var complaints []string
	ast.Inspect(file.tree, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if ok && !file.isProduct() && selector(call.Fun) == "retry.RetryOnConflict" {
			complaints = append(complaints, file.complain(call, "it gives up after some tries: take PastConflicts, or Change, of test/expect"))
		}
		return true
	})
	return complaints
}

func TestTestsGoPastConflicts(t *testing.T) { report(t, conflicts) }

func TestConflictsCatch(t *testing.T) {
	const code = "package x\nfunc f() error { return retry.RetryOnConflict(retry.DefaultBackoff, write) }"
	catches(t, conflicts, []law{
		{"a test", "pkg/x/a_test.go", code, "PastConflicts"},
		{"a helper of tests", "test/x/a.go", code, "PastConflicts"},
		{"the product", "pkg/x/a.go", code, ""},
	})
}

// cleanups complains about clean-ups with the context of the test, which has ended by then: they do nothing, or fail.
func cleanups(file source) []string {
	var complaints []string
	ast.Inspect(file.tree, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		if method, isMethod := call.Fun.(*ast.SelectorExpr); isMethod && method.Sel.Name == "Cleanup" {
			for _, ended := range endedContexts(call) {
				complaints = append(complaints, file.complain(ended, "the test's context has ended in a clean-up: use context.WithoutCancel"))
			}
		}
		return true
	})
	return complaints
}

// endedContexts are uses of a test's context below a clean-up, those of words of test/expect among them.
func endedContexts(cleanup *ast.CallExpr) (found []ast.Node) {
	ast.Inspect(cleanup, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		if isContext(call) || callsClient(selector(call.Fun)) {
			found = append(found, call)
		}
		return selector(call.Fun) != "context.WithoutCancel"
	})
	return found
}

// callsClient says whether a function of test/expect calls a client, or waits, by the test's context.
func callsClient(word string) bool {
	return strings.HasPrefix(word, "expect.") && word != "expect.NoError"
}

func TestCleanUpsHaveAContext(t *testing.T) { report(t, cleanups) }

func TestCleanUpsCatch(t *testing.T) {
	code := func(cleanup string) string { return "package x\nfunc f() { t.Cleanup(func() { " + cleanup + " }) }" }
	catches(t, cleanups, []law{
		{"an ended context", "pkg/x/a_test.go", code("_ = c.Delete(w.t.Context(), made)"), "WithoutCancel"},
		{"a word that takes it", "pkg/x/a_test.go", code("expect.Delete(t, c, made)"), "WithoutCancel"},
		{"one that does not end", "pkg/x/a_test.go", code("_ = c.Delete(context.WithoutCancel(t.Context()), made)"), ""},
		{"before it", "pkg/x/a_test.go", "package x\nfunc f() { _ = c.Delete(t.Context(), made) }", ""},
	})
}
