package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// prefix starts the names of ours, as constant Prefix of the API says.
const prefix = "addons.kubermatic.k8c.io/"

// group is one block of constants, with its comment.
type group struct {
	about     string
	constants []named
}

// named is one constant: its name and value, and what its comment says of it.
type named struct{ name, value, says string }

// groups reads the string constants of a file. The names of all are known to each other.
func groups(file string) ([]group, error) {
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	known := map[string]string{"Prefix": prefix}
	var all []group
	for _, declaration := range tree.Decls {
		block, is := declaration.(*ast.GenDecl)
		if !is || block.Tok != token.CONST {
			continue
		}
		made := group{about: oneLine(block.Doc.Text())}
		for _, spec := range block.Specs {
			if one, is := constantOf(spec.(*ast.ValueSpec), known); is {
				known[one.name] = one.value
				made.constants = append(made.constants, one)
			}
		}
		if len(made.constants) > 0 && strings.HasPrefix(made.about, made.constants[0].name) {
			made.constants[0].says = sentence(made.constants[0].name, made.about)
		}
		all = append(all, made)
	}
	return all, nil
}

func constantOf(spec *ast.ValueSpec, known map[string]string) (named, bool) {
	if len(spec.Values) != 1 {
		return named{}, false
	}
	value, is := textOf(spec.Values[0], known)
	return named{name: spec.Names[0].Name, value: value, says: sentence(spec.Names[0].Name, spec.Doc.Text())}, is
}

// textOf is the value of an expression out of literals, known names and sums of both.
func textOf(expression ast.Expr, known map[string]string) (string, bool) {
	switch expression := expression.(type) {
	case *ast.BasicLit:
		value := constant.MakeFromLiteral(expression.Value, expression.Kind, 0)
		if value.Kind() != constant.String {
			return "", false
		}
		return constant.StringVal(value), true
	case *ast.Ident:
		value, is := known[expression.Name]
		return value, is
	case *ast.SelectorExpr:
		value, is := known[expression.Sel.Name]
		return value, is
	case *ast.BinaryExpr:
		left, isLeft := textOf(expression.X, known)
		right, isRight := textOf(expression.Y, known)
		return left + right, isLeft && isRight && expression.Op == token.ADD
	}
	return "", false
}

// sentence is a comment without the name that it begins with.
func sentence(name, comment string) string {
	text := oneLine(comment)
	text = strings.TrimLeft(strings.TrimPrefix(text, name), ":, ")
	if quoted, err := strconv.Unquote(text); err == nil {
		return quoted
	}
	return text
}

// conditionsFile and namesFile are where the words of our API stand.
const (
	conditionsFile = "apis/kubermatic/v1/conditions.go"
	namesFile      = "apis/kubermatic/v1/names.go"
)

// table writes the constants of a group whose names begin so, if there are some. It tells how many.
func table(page *document, from group, column string, prefixes ...string) int {
	count := 0
	for _, one := range from.constants {
		if !slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(one.name, prefix) }) {
			continue
		}
		if count == 0 {
			page.head(column, "means")
		}
		page.row(code(one.value), plain(one.says))
		count++
	}
	return count
}

func eventsPage(root string) (string, error) {
	all, err := groups(filepath.Join(root, conditionsFile))
	if err != nil {
		return "", err
	}
	page := begin("events")
	fmt.Fprintln(page)
	count := 0
	for _, one := range all {
		count += table(page, one, "event", "Event")
	}
	if count == 0 {
		return "", fmt.Errorf("no events in %s", conditionsFile)
	}
	return page.String(), nil
}

// ofConditions begin the names of constants that conditions have, or the reasons in status.excluded.
var ofConditions = []string{"Condition", "Reason", "Excluded"}

func isOfConditions(name string) bool {
	return slices.ContainsFunc(ofConditions, func(word string) bool { return strings.HasPrefix(name, word) })
}

// titleOf is the heading of a group, and the sentences below it: none where the comment is that of the first constant.
func titleOf(of group) (title, details string) {
	if len(of.constants) > 0 && strings.HasPrefix(of.about, of.constants[0].name) {
		return of.constants[0].name, ""
	}
	title, details, _ = strings.Cut(of.about, ". ")
	return strings.TrimSuffix(title, "."), details
}

func conditionsPage(root string) (string, error) {
	all, err := groups(filepath.Join(root, conditionsFile))
	if err != nil {
		return "", err
	}
	page := begin("conditions")
	for _, one := range all {
		conditions := group{}
		for _, constant := range one.constants {
			if isOfConditions(constant.name) {
				conditions.constants = append(conditions.constants, constant)
			}
		}
		if len(conditions.constants) == 0 {
			continue
		}
		title, details := titleOf(one)
		if first := conditions.constants[0]; title == first.name {
			title = "Condition " + first.value
		}
		page.heading(title)
		if details != "" {
			page.paragraph(plain(details))
		}
		table(page, conditions, "condition or reason", ofConditions...)
	}
	return page.String(), nil
}

func namesPage(root string) (string, error) {
	all, err := groups(filepath.Join(root, namesFile))
	if err != nil {
		return "", err
	}
	page := begin("names")
	for _, one := range all {
		title, details := titleOf(one)
		page.heading(plain(title))
		if details != "" {
			page.paragraph(plain(details))
		}
		table(page, one, "name", "")
	}
	ofCharts, err := chartNames(all)
	if err != nil {
		return "", err
	}
	page.heading("Of the charts")
	page.paragraph("Labels by which [roles for people](../spec/roles.md) aggregate the rules of others, with the charts in namespace " +
		code(namespace) + ".")
	table(page, ofCharts, "name", "")
	kept, err := keptNames(root)
	if err != nil {
		return "", err
	}
	page.heading("Internal names of the managers")
	page.paragraph("On records, identities and cached objects. Only the managers read them.")
	table(page, kept, "name", "")
	return page.String(), nil
}

// keptNames are the names with our prefix that packages of the product have for themselves.
func keptNames(root string) (group, error) {
	made := group{}
	err := filepath.WalkDir(filepath.Join(root, "pkg"), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return err
		}
		all, err := groups(name)
		for _, one := range all {
			for _, constant := range one.constants {
				if strings.HasPrefix(constant.value, prefix) && !strings.HasSuffix(constant.value, "/") {
					made.constants = append(made.constants, constant)
				}
			}
		}
		return err
	})
	return made, err
}
