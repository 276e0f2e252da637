package laws

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// metricName is how our metrics are called.
var metricName = regexp.MustCompile(`\btrellis_[a-z_]+`)

// metrics are the literals of a file that are names of metrics.
func metrics(file source) []string {
	var found []string
	ast.Inspect(file.tree, func(node ast.Node) bool {
		literal, ok := node.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		if text, err := strconv.Unquote(literal.Value); err == nil && metricName.FindString(text) == text && text != "" {
			found = append(found, text)
		}
		return true
	})
	return found
}

func TestMetricsAreThoseOfTheSpecPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(checkout(t), "docs", "spec", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	explained := metricName.FindAllString(string(page), -1)
	var made []string
	for _, file := range sources(t) {
		if file.isProduct() {
			made = append(made, metrics(file)...)
		}
	}
	if len(made) < 10 {
		t.Fatalf("only %d metrics found: names have to stand whole in the code", len(made))
	}
	for _, name := range made {
		if !slices.Contains(explained, name) {
			t.Errorf("docs/spec/metrics.md does not explain %s", name)
		}
	}
	for _, name := range explained {
		if !slices.Contains(made, name) {
			t.Errorf("docs/spec/metrics.md explains %s, which nothing makes", name)
		}
	}
}

func TestMetricsAreFound(t *testing.T) {
	found := metrics(snippet(t, "pkg/x/metrics.go", "package x\nvar a, b = \"trellis_x_total\", `see trellis_y_total`"))
	if !slices.Equal(found, []string{"trellis_x_total"}) {
		t.Errorf("found %q, expected the one name", found)
	}
}
