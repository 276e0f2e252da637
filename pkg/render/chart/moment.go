package chart

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/template/parse"

	helmchart "helm.sh/helm/v3/pkg/chart"

	"github.com/trellis-addons/trellis/pkg/render"
)

const (
	nowFunction = "now"
	dateLayout  = "2006-01-02 15:04:05"
)

// otherMoment is a call that gives another time than now.
var otherMoment = fmt.Sprintf("(toDate %q %q)", dateLayout, render.OtherTime.Format(dateLayout))

// atOtherMoment has the templates of a chart and of its dependencies read another time off the clock. Helm's engine takes no other
// now. Text that comes with values keeps the real one.
func atOtherMoment(chart *helmchart.Chart) {
	for _, file := range chart.Templates {
		file.Data = []byte(withOtherNow(string(file.Data)))
	}
	for _, dependency := range chart.Dependencies() {
		atOtherMoment(dependency)
	}
}

// withOtherNow writes calls of now anew, on the lines where they stand. A text that can't be parsed stays as it is.
func withOtherNow(text string) string {
	if !strings.Contains(text, nowFunction) {
		return text
	}
	var calls []int
	eachNode(text, func(node parse.Node) {
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
