package chart

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/template/parse"

	helmchart "helm.sh/helm/v3/pkg/chart"

	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/values/templatenodes"
)

const (
	tplFunction  = "tpl"
	listFunction = "list"
)

type edit struct {
	at, end int
	by      string
}

// withGuardedCalls rewrites "tpl TEXT DATA" to "list TEXT DATA | include GUARD", which takes piped arguments the same
// way. Lines keep their numbers. The engine reports errors in the text.
func withGuardedCalls(text string) string {
	if !strings.Contains(text, tplFunction) {
		return text
	}
	var edits []edit
	templatenodes.Each(text, func(node parse.Node) {
		command, ok := node.(*parse.CommandNode)
		if !ok || len(command.Args) < 2 {
			return
		}
		function, ok := command.Args[0].(*parse.IdentifierNode)
		if !ok || function.Ident != tplFunction {
			return
		}
		at := int(function.Pos)
		end := endOfCommand(text, at+len(tplFunction))
		edits = append(edits, edit{at, at + len(tplFunction), listFunction}, edit{end, end, " | include " + strconv.Quote(guardedTpl)})
	})
	slices.SortFunc(edits, func(a, b edit) int { return cmp.Compare(b.at, a.at) })
	for _, edit := range edits {
		text = text[:edit.at] + edit.by + text[edit.end:]
	}
	return text
}

// endOfCommand is the end of a command, before the space after it.
func endOfCommand(text string, at int) int {
	end, depth := at, 0
scan:
	for ; end < len(text); end++ {
		switch char := text[end]; char {
		case '(':
			depth++
		case ')':
			if depth == 0 {
				break scan
			}
			depth--
		case '|':
			if depth == 0 {
				break scan
			}
		case '}':
			if strings.HasPrefix(text[end:], "}}") {
				break scan
			}
		case '"', '\'', '`':
			end = endOfQuoted(text, end)
		}
	}
	if strings.HasPrefix(text[end:], "}}") && end > at+1 && text[end-1] == '-' && strings.ContainsRune(" \t\r\n", rune(text[end-2])) {
		end--
	}
	return at + len(strings.TrimRight(text[at:end], " \t\r\n"))
}

func endOfQuoted(text string, at int) int {
	quote := text[at]
	for end := at + 1; end < len(text); end++ {
		switch {
		case text[end] == quote:
			return end
		case text[end] == '\\' && quote != '`':
			end++
		}
	}
	return len(text) - 1
}

func literals(text string) []string {
	var found []string
	if !strings.Contains(text, tplFunction) {
		return nil
	}
	templatenodes.Each(text, func(node parse.Node) {
		if literal, ok := node.(*parse.StringNode); ok {
			found = append(found, literal.Text)
		}
	})
	return found
}

const (
	nowFunction = "now"
	dateLayout  = "2006-01-02 15:04:05"
)

var otherMoment = fmt.Sprintf("(toDate %q %q)", dateLayout, render.OtherTime.Format(dateLayout))

// atOtherMoment makes the templates of a chart and its dependencies read another time. Helm's engine accepts no
// replacement of now. Text from values uses the real one.
func atOtherMoment(chart *helmchart.Chart) {
	for _, file := range chart.Templates {
		file.Data = []byte(withOtherNow(string(file.Data)))
	}
	for _, dependency := range chart.Dependencies() {
		atOtherMoment(dependency)
	}
}

// withOtherNow rewrites calls of now, and keeps line numbers. A text that can't be parsed is not changed.
func withOtherNow(text string) string {
	if !strings.Contains(text, nowFunction) {
		return text
	}
	var calls []int
	templatenodes.Each(text, func(node parse.Node) {
		if function, ok := node.(*parse.IdentifierNode); ok && function.Ident == nowFunction {
			calls = append(calls, int(function.Pos))
		}
	})
	slices.SortFunc(calls, func(a, b int) int { return cmp.Compare(b, a) })
	for _, at := range slices.Compact(calls) {
		text = text[:at] + otherMoment + text[at+len(nowFunction):]
	}
	return text
}
