package laws

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// spanWords are the words of a file that traces are made of: the kinds of spans and the attributes of pkg/base/tracing, and the names of
// passes where a controller is registered.
func spanWords(file source) []string {
	var found []string
	ast.Inspect(file.tree, func(node ast.Node) bool {
		switch at := node.(type) {
		case *ast.ValueSpec:
			kind, is := at.Type.(*ast.Ident)
			if is && file.pkg() == "pkg/base/tracing" && (kind.Name == "Kind" || kind.Name == "Key") {
				for _, value := range at.Values {
					if text, is := literal(value); is {
						found = append(found, text)
					}
				}
			}
		case *ast.CallExpr:
			if index, is := map[string]int{"loop.Register": 1, "loop.Traced": 0, "loop.BeginReconcile": 1}[selector(at.Fun)]; is {
				if text, is := literal(at.Args[index]); is {
					found = append(found, text)
				}
			}
		}
		return true
	})
	return found
}

// pageWords are what the page of traces calls a span, an attribute or a pass: the marked words of the first cells of its tables, and of the
// table of passes.
var pageWords = regexp.MustCompile("`([a-z][a-z0-9._-]*)`")

func TestTracesAreThoseOfTheSpecPage(t *testing.T) {
	text := page(t, "spec", "traces.md")
	_, reported, _ := strings.Cut(text, "## Spans and attributes")
	reported, _, _ = strings.Cut(reported, "## What it costs")
	var made, explained []string
	for _, file := range sources(t) {
		if file.isProduct() {
			made = append(made, spanWords(file)...)
		}
	}
	if len(made) < 25 {
		t.Fatalf("only %d words of traces found: names have to stand whole in the code", len(made))
	}
	for line := range strings.Lines(reported) {
		if cells := strings.Split(line, "|"); len(cells) > 3 {
			cell := cells[1]
			if first := strings.TrimSpace(cell); first == "master" || first == "seed" {
				cell = cells[2]
			}
			for _, match := range pageWords.FindAllStringSubmatch(cell, -1) {
				explained = append(explained, match[1])
			}
		}
	}
	for _, word := range made {
		if !slices.Contains(explained, word) {
			t.Errorf("docs/spec/traces.md does not explain %q", word)
		}
	}
	for _, word := range explained {
		if !slices.Contains(made, word) {
			t.Errorf("docs/spec/traces.md explains %q, which nothing tells", word)
		}
	}
}
