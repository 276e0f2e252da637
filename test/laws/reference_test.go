package laws

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	// flagName is what a flag is called.
	flagName = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	// ownName is a label, an annotation, a finalizer or a type of ours, written out or after our prefix.
	ownName = regexp.MustCompile(`^(?:addons\.|apps\.)?kubermatic\.k8c\.io/[a-z0-9.-]+$`)
)

// flagMethods register a flag, with its name after the variable.
var flagMethods = []string{
	"StringVar", "BoolVar", "IntVar", "Int64Var", "UintVar", "Uint64Var", "Float64Var", "DurationVar", "TextVar", "Var", "ListVar",
	"String", "Bool", "Int", "Duration", "Func", "BoolFunc",
}

// page reads a page of the reference.
func page(t *testing.T, parts ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{checkout(t), "docs"}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// flags are the names of the flags that a file of cmd registers: the first text among the arguments of a call that does.
func flags(file source) []string {
	var found []string
	ast.Inspect(file.tree, func(node ast.Node) bool {
		call, is := node.(*ast.CallExpr)
		if !is || len(call.Args) < 3 || !slices.Contains(flagMethods, called(call)) {
			return true
		}
		for _, argument := range call.Args[:3] {
			if name, is := literal(argument); is && flagName.MatchString(name) {
				found = append(found, name)
				break
			}
		}
		return true
	})
	return found
}

// called is the last part of the name of a called function.
func called(call *ast.CallExpr) string {
	switch function := call.Fun.(type) {
	case *ast.SelectorExpr:
		return function.Sel.Name
	case *ast.Ident:
		return function.Name
	}
	return ""
}

func literal(expression ast.Expr) (string, bool) {
	text, is := expression.(*ast.BasicLit)
	if !is || text.Kind != token.STRING {
		return "", false
	}
	value, err := strconv.Unquote(text.Value)
	return value, err == nil
}

// ownNames are the literals of a file that are names of ours.
func ownNames(file source) []string {
	var found []string
	ast.Inspect(file.tree, func(node ast.Node) bool {
		if expression, is := node.(ast.Expr); is {
			if text, is := literal(expression); is && ownName.MatchString(text) {
				found = append(found, text)
			}
		}
		return true
	})
	return found
}

// prefixed are the names that a file makes of a name Prefix and a text.
func prefixed(file source) []string {
	var found []string
	ast.Inspect(file.tree, func(node ast.Node) bool {
		sum, is := node.(*ast.BinaryExpr)
		if !is || sum.Op != token.ADD {
			return true
		}
		left, isName := sum.X.(*ast.Ident)
		if selector, is := sum.X.(*ast.SelectorExpr); is {
			left, isName = selector.Sel, true
		}
		if text, is := literal(sum.Y); is && isName && left.Name == "Prefix" {
			found = append(found, "addons.kubermatic.k8c.io/"+text)
		}
		return true
	})
	return found
}

// wordyEvents complains about events whose reason is a text of the place and no word of the API, which alone the reference has.
func wordyEvents(file source) []string {
	var complaints []string
	ast.Inspect(file.tree, func(node ast.Node) bool {
		if call, is := node.(*ast.CallExpr); is && called(call) == "Eventf" && len(call.Args) > 3 {
			if reason, is := literal(call.Args[3]); is {
				complaints = append(complaints, file.complain(call, "event %q: make its reason a constant of apis/kubermatic/v1/conditions.go", reason))
			}
		}
		return true
	})
	return complaints
}

func TestTheReferenceHasAllThatTheCodeHas(t *testing.T) {
	var allFlags, allNames, allReasons, allEvents, allMetrics []string
	for _, file := range sources(t) {
		if !file.isProduct() {
			continue
		}
		if strings.HasPrefix(file.file, "cmd/") {
			allFlags = append(allFlags, flags(file)...)
		}
		allNames = append(append(allNames, ownNames(file)...), prefixed(file)...)
		allMetrics = append(allMetrics, metrics(file)...)
		if file.file == "apis/kubermatic/v1/conditions.go" {
			for name, value := range reasons(file) {
				if strings.HasPrefix(name, "Event") {
					allEvents = append(allEvents, value)
				} else {
					allReasons = append(allReasons, value)
				}
			}
		}
	}
	for _, each := range []struct {
		what, text, before string
		least              int
		names              []string
	}{
		{"flag", page(t, "reference", "flags.md"), "`--", 40, allFlags},
		// Types of Secrets are no names that objects carry; the page of Helm releases explains the one of ours.
		{"name", page(t, "reference", "names.md") + page(t, "spec", "helm.md") + page(t, "spec", "addoncatalogue.md"), "`", 50, allNames},
		{"reason", page(t, "reference", "conditions.md"), "`", 50, allReasons},
		{"event", page(t, "reference", "events.md"), "`", 25, allEvents},
		{"metric", page(t, "reference", "metrics.md"), "`", 30, allMetrics},
	} {
		if len(each.names) < each.least {
			t.Errorf("only %d of kind %s found: this test reads the wrong files", len(each.names), each.what)
		}
		for _, name := range each.names {
			if !strings.Contains(each.text, each.before+name+"`") {
				t.Errorf("the reference lacks %s %q: run make generate", each.what, name)
			}
		}
	}
}

func TestEventsHaveWordsOfTheAPI(t *testing.T) {
	report(t, func(file source) []string {
		if !file.isProduct() {
			return nil
		}
		return wordyEvents(file)
	})
	catches(t, wordyEvents, []law{
		{"a constant", "pkg/x/x.go", `package x; func f() { r.Eventf(o, nil, "Normal", v1.EventApplied, "Apply", "x") }`, ""},
		{"a text", "pkg/x/x.go", `package x; func f() { r.Eventf(o, nil, "Normal", "Applied", "Apply", "x") }`, `event "Applied"`},
	})
}

func TestWordsOfTheReferenceAreFound(t *testing.T) {
	file := snippet(t, "cmd/x/x.go", `package x
		func f() {
			set.StringVar(&a, "a-flag", "value", "usage")
			flags.ListVar(set, &b, "b-flag", "usage", nil)
			c := flag.String("c-flag", "", "usage")
			fmt.Sprintf("%s", "no-flag", c)
		}
		const x, y, z = "addons.kubermatic.k8c.io/x", v1.Prefix + "y", "addons.kubermatic.k8c.io/ is no name"`)
	for what, found := range map[string][2][]string{
		"flags": {flags(file), {"a-flag", "b-flag", "c-flag"}}, "names": {ownNames(file), {"addons.kubermatic.k8c.io/x"}},
		"names by prefix": {prefixed(file), {"addons.kubermatic.k8c.io/y"}},
	} {
		if !slices.Equal(found[0], found[1]) {
			t.Errorf("%s: found %q, expected %q", what, found[0], found[1])
		}
	}
}

// codeWord is a word of the API that a page marks as one: a kind, a condition, a reason.
var codeWord = regexp.MustCompile("`([A-Z][a-z]+[A-Z]?[A-Za-z0-9]*)`")

// literals are all texts of a file.
func literals(file source) []string {
	var found []string
	ast.Inspect(file.tree, func(node ast.Node) bool {
		if expression, is := node.(ast.Expr); is {
			if text, is := literal(expression); is {
				found = append(found, text)
			}
		}
		return true
	})
	return found
}

func TestGuidesNameReasonsThatTheCodeHas(t *testing.T) {
	var texts []string
	for _, file := range sources(t) {
		if file.isProduct() {
			texts = append(texts, literals(file)...)
		}
	}
	// Alerts are in the charts; another test compares them with their page.
	all := strings.Join(append(texts, regexp.MustCompile(`(?m)^## Trellis\w+$`).FindAllString(page(t, "spec", "alerts.md"), -1)...), "\n")
	pages := pagesOf(t, filepath.Join(checkout(t), "docs", "guides"))
	count := 0
	for name := range pages {
		for _, word := range codeWord.FindAllStringSubmatch(page(t, "guides", name), -1) {
			if count++; !strings.Contains(all, word[1]) {
				t.Errorf("docs/guides/%s names `%s`, which the code does not have", name, word[1])
			}
		}
	}
	if count < 60 {
		t.Errorf("only %d words found in the guides", count)
	}
}
