package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// metricName is how our metrics are called.
var metricName = regexp.MustCompile(`^trellis_[a-z_]+$`)

// metric is one that the code makes.
type metric struct{ name, kind, help string }

func metricsPage(root string) (string, error) {
	var all []metric
	for _, folder := range []string{"pkg", "cmd"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
				return err
			}
			tree, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err == nil {
				all = append(all, metricsOf(tree)...)
			}
			return err
		})
		if err != nil {
			return "", err
		}
	}
	slices.SortFunc(all, func(a, b metric) int { return cmp.Compare(a.name, b.name) })
	all = slices.Compact(all)
	if len(all) == 0 {
		return "", fmt.Errorf("no metrics below %q", root)
	}
	page := begin("metrics")
	fmt.Fprintln(page)
	page.head("metric", "type", "means")
	for _, one := range all {
		page.row(code(one.name), one.kind, plain(one.help))
	}
	return page.String(), nil
}

// metricsOf finds metrics by their name, which is in the code as one text, and takes the next text beside it for the help.
func metricsOf(tree *ast.File) []metric {
	var found []metric
	ast.Inspect(tree, func(node ast.Node) bool {
		var parts []ast.Expr
		switch node := node.(type) {
		case *ast.CallExpr:
			parts = node.Args
		case *ast.CompositeLit:
			for _, element := range node.Elts {
				if pair, is := element.(*ast.KeyValueExpr); is {
					parts = append(parts, pair.Value)
				}
			}
		}
		for i, part := range parts {
			name, is := textOf(part, nil)
			if !is || !metricName.MatchString(name) || i+1 >= len(parts) {
				continue
			}
			if help, is := textOf(parts[i+1], nil); is {
				found = append(found, metric{name: name, kind: kindOf(name, tree), help: help})
			}
		}
		return true
	})
	return found
}

// kindOf is the type of a metric: by the function that makes it, or, where a helper or a collector does, by its name.
func kindOf(name string, tree *ast.File) string {
	kind := ""
	ast.Inspect(tree, func(node ast.Node) bool {
		call, is := node.(*ast.CallExpr)
		if !is || !mentions(call, name) {
			return true
		}
		if selector, is := call.Fun.(*ast.SelectorExpr); is {
			for _, word := range []string{"Counter", "Gauge", "Histogram"} {
				if strings.HasPrefix(selector.Sel.Name, "New"+word) {
					kind = strings.ToLower(word)
				}
			}
		}
		return true
	})
	if kind == "" && strings.HasSuffix(name, "_total") {
		return "counter"
	}
	return cmp.Or(kind, "gauge")
}

func mentions(call *ast.CallExpr, name string) bool {
	isThere := false
	ast.Inspect(call, func(node ast.Node) bool {
		if literal, is := node.(*ast.BasicLit); is && literal.Value == strconv.Quote(name) {
			isThere = true
		}
		return true
	})
	return isThere
}
