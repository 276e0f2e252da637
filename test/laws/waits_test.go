package laws

import (
	"go/ast"
	"testing"
)

// waits complains about a file that builds a controller, and lets client-go say how long it waits after errors: up to a quarter of an hour.
func waits(file source) (complaints []string) {
	if !file.isProduct() {
		return nil
	}
	var built []ast.Node
	hasWaits := false
	ast.Inspect(file.tree, func(node ast.Node) bool {
		call, is := node.(*ast.CallExpr)
		if !is {
			return true
		}
		name := selector(call.Fun)
		if own, isOwn := call.Fun.(*ast.Ident); isOwn {
			name = "loop." + own.Name
		}
		switch name {
		case "ctrl.NewControllerManagedBy", "builder.ControllerManagedBy", "controller.New":
			built = append(built, call)
		case "loop.ErrorWaits":
			hasWaits = true
		}
		return true
	})
	for _, call := range built {
		if !hasWaits {
			complaints = append(complaints, file.complain(call, "the controller waits as client-go does: use loop.Register, or RateLimiter: loop.ErrorWaits()"))
		}
	}
	return complaints
}

func TestControllersWaitAsPkgLoopSays(t *testing.T) { report(t, waits) }

func TestOtherWaitsAreFound(t *testing.T) {
	code := func(body string) string { return "package a\n\nfunc f() {\n\t" + body + "\n}\n" }
	catches(t, waits, []law{
		{"registered", "pkg/controllers/addon/a.go", code(`loop.Register(mgr, "a", controller.Options{Reconciler: r})`), ""},
		{"built with them", "pkg/controllers/addon/a.go", code(`ctrl.NewControllerManagedBy(m).WithOptions(controller.Options{RateLimiter: loop.ErrorWaits()})`), ""},
		{"built without", "pkg/controllers/addon/a.go", code(`ctrl.NewControllerManagedBy(m).Complete(r)`), "waits as client-go does"},
		{"made with them", "pkg/base/loop/a.go", code("options.RateLimiter = ErrorWaits()\n\tcontroller.New(name, mgr, options)"), ""},
		{"made without", "pkg/base/loop/a.go", code(`controller.New(name, mgr, options)`), "waits as client-go does"},
		{"in a test", "pkg/base/loop/a_test.go", code(`controller.New(name, mgr, options)`), ""},
	})
}
