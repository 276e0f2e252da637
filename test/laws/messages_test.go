package laws

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// wordsInRow make a literal prose. A literal of one word is a key, a label or a value.
var wordsInRow = regexp.MustCompile(`\pL\S*\s+\S*\pL`)

// protocols are literals with several words that only programs read.
var protocols = []string{
	"want %s%s\n", // a line of git's protocol
}

// published are files that reach people as they are: messages of policies, alerts, notes, schemas and dashboards.
var published = []string{
	"charts/*/*.json", "charts/*/crds/*.yaml", "charts/*/templates/*", "deploy/*/*.yaml", "deploy/*/crds/*.yaml", "pkg/serve/query/openapi.json",
}

// markers begin comments that a generator copies to a page or into a CRD.
var markers = regexp.MustCompile(`^//rights:|^// \+kubebuilder:`)

// message is the text of a literal, or of a sum of strings with X in place of each other operand. It adds the parts of the sum to seen.
func message(expression ast.Expr, seen map[ast.Node]bool) string {
	seen[expression] = true
	switch part := expression.(type) {
	case *ast.BasicLit:
		if part.Kind == token.STRING {
			text, _ := strconv.Unquote(part.Value)
			return text
		}
	case *ast.BinaryExpr:
		if part.Op == token.ADD {
			return message(part.X, seen) + message(part.Y, seen)
		}
	}
	delete(seen, expression)
	return "X"
}

// unclear complains about odd words in the messages of the product: literals that are prose, and comments that generators copy.
func unclear(file source) (complaints []string) {
	if !file.isProduct() {
		return nil
	}
	check := func(place ast.Node, text string) {
		if !wordsInRow.MatchString(text) || slices.Contains(protocols, text) {
			return
		}
		for _, advice := range oddLines(noProse.ReplaceAllStringFunc(text, blank)) {
			complaints = append(complaints, file.complain(place, "%s", advice))
		}
	}
	seen := map[ast.Node]bool{}
	ast.Inspect(file.tree, func(node ast.Node) bool {
		if expression, ok := node.(ast.Expr); ok && !seen[node] {
			check(node, message(expression, seen))
		}
		return true
	})
	for _, group := range file.tree.Comments {
		for _, comment := range group.List {
			if markers.MatchString(comment.Text) {
				check(comment, comment.Text)
			}
		}
	}
	return complaints
}

func TestMessagesUsePlainWords(t *testing.T) {
	report(t, unclear)
	root := checkout(t)
	for _, pattern := range published {
		for name, text := range pages(t, root, pattern) {
			for line, advice := range oddLines(noProse.ReplaceAllStringFunc(text, blank)) {
				t.Errorf("%s:%d: %s%s", name, line, advice, origin(name))
			}
		}
	}
}

func TestOddWordsOfMessagesAreFound(t *testing.T) {
	code := func(line string) string { return "package a\n\n" + line + "\n" }
	catches(t, unclear, []law{
		{"an error", "pkg/a/a.go", code(`var _ = errors.New("mend the object")`), `pkg/a/a.go:3: "mend": write "fix"`},
		{"a format", "cmd/a/a.go", code("var _ = fmt.Sprintf(`the former %q`, name)"), `"former"`},
		{"a phrase over two literals", "pkg/a/a.go", code(`var _ = "what is gone " + "by: %s"`), `"gone by"`},
		{"one word and a value", "pkg/a/a.go", code(`var _ = "anew: " + name`), `"anew"`},
		{"an argument in a sum", "pkg/a/a.go", code(`var _ = "a" + f("the room")`), `"room"`},
		{"a right", "pkg/a/doc.go", code(`//rights:seed get secrets -- nobody else`), `"nobody"`},
		{"a rule of a kind", "apis/a/v1/a.go", code(`// +kubebuilder:validation:XValidation:rule="a",message="it stands"`), `"stands"`},
		{"a key", "pkg/a/a.go", code(`var _ = log.Info("a line", "former", name)`), ""},
		{"another comment", "pkg/a/a.go", code(`// the former room`), ""},
		{"code in a message", "pkg/a/a.go", code("var _ = \"run `mend now` again\""), ""},
		{"a protocol", "pkg/a/a.go", code(`var _ = "want %s%s\n"`), ""},
		{"a test", "pkg/a/a_test.go", code(`var _ = "the former room"`), ""},
		{"a tool", "hack/a/a.go", code(`var _ = "the former room"`), ""},
	})
}
