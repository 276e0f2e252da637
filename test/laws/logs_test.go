package laws

import (
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	camelCase = regexp.MustCompile(`^[a-z][a-zA-Z]*$`)
	// logRow is a row of the table of keys.
	logRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")
)

// foreignKeys are those that libraries give lines, in the table too.
var foreignKeys = []string{"controller", "controllerGroup", "controllerKind", "err", "namespace", "name", "object", "reconcileID"}

// logArguments are the keys and values of a call that writes a line, or gives a logger some; nil for another call. Infos have a text first,
// and errors an error before it; nothing else in the product has methods of these names with a text there.
func logArguments(call *ast.CallExpr) []ast.Expr {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	if receiver, isName := method.X.(*ast.Ident); isName && receiver.Name == "http" { // http.Error
		return nil
	}
	switch name := method.Sel.Name; {
	case name == "WithValues":
		return call.Args
	case name == "Info" && len(call.Args) > 1 && isText(call.Args[0]):
		return call.Args[1:]
	case name == "Error" && len(call.Args) > 2 && isText(call.Args[1]):
		return call.Args[2:]
	}
	return nil
}

func isText(expression ast.Expr) bool {
	literal, ok := expression.(*ast.BasicLit)
	return ok && literal.Kind == token.STRING
}

// logKeys are the keys of lines that a file writes, with complaints about those that can't be read.
func logKeys(file source) (keys map[string]ast.Node, complaints []string) {
	keys = map[string]ast.Node{}
	ast.Inspect(file.tree, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		arguments := logArguments(call)
		if len(arguments)%2 != 0 || call.Ellipsis.IsValid() && arguments != nil {
			complaints = append(complaints, file.complain(call, "keys and values of the log stand in pairs, and are written out"))
			return true
		}
		for i := 0; i < len(arguments); i += 2 {
			if !isText(arguments[i]) {
				complaints = append(complaints, file.complain(arguments[i], "a key of the log is a constant text"))
				continue
			}
			key, _ := strconv.Unquote(arguments[i].(*ast.BasicLit).Value)
			if !camelCase.MatchString(key) {
				complaints = append(complaints, file.complain(arguments[i], "key %q of the log is not in camelCase", key))
			}
			keys[key] = arguments[i]
		}
		return true
	})
	return keys, complaints
}

// TestLogsHaveOneKeyForEachThing: red when a line has a key that the table of docs/spec/operation.md does not have, which is how two keys
// of one thing are found, when it is no constant in camelCase, and when the table has a key that no line has.
func TestLogsHaveOneKeyForEachThing(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(checkout(t), "docs", "spec", "operation.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## Logs\n")
	section, _, _ = strings.Cut(section, "\n## ")
	explained := map[string]bool{}
	for _, row := range logRow.FindAllStringSubmatch(section, -1) {
		explained[row[1]] = slices.Contains(foreignKeys, row[1])
	}
	if !found || len(explained) < 10 {
		t.Fatalf("docs/spec/operation.md explains %d keys of the log", len(explained))
	}
	for _, file := range sources(t) {
		if !file.isProduct() {
			continue
		}
		keys, complaints := logKeys(file)
		for _, complaint := range complaints {
			t.Error(complaint)
		}
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			if _, isKnown := explained[key]; !isKnown {
				t.Error(file.complain(keys[key], "docs/spec/operation.md has no key %q of the log: take the one for this thing, or add it", key))
			}
			explained[key] = true
		}
	}
	for key, isUsed := range explained {
		if !isUsed {
			t.Errorf("docs/spec/operation.md explains key %q of the log, which no line has", key)
		}
	}
}

func TestKeysOfLogsAreFound(t *testing.T) {
	file := snippet(t, "pkg/x/x.go", `package x
func f() {
	log.FromContext(ctx).V(1).Info("a line", "one", 1, "Two", 2)
	logger.Error(err, "a line", key, 3)
	logger.Error(err, "a line", "odd")
	logger.WithValues("three", 3).Info("without keys")
	logger.Info("spread", pairs...)
	err.Error()
	http.Error(writer, "text", 400)
}`)
	keys, complaints := logKeys(file)
	if got := slices.Sorted(maps.Keys(keys)); !slices.Equal(got, []string{"Two", "one", "three"}) {
		t.Errorf("keys are %q", got)
	}
	for i, want := range []string{`"Two" of the log is not in camelCase`, "a constant text", "stand in pairs", "stand in pairs"} {
		if i >= len(complaints) || !strings.Contains(complaints[i], want) {
			t.Errorf("complaint %d of %q does not say %q", i, complaints, want)
		}
	}
}
