package chart

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"

	"github.com/trellis-addons/trellis/pkg/base/text"
)

// correctValues says how to correct values that a chart refuses.
const correctValues = "correct what spec.values, or another layer of values, sets there"

var (
	// executing finds the positions of templates in an error: file, line and byte of the line, the innermost template
	// last.
	executing = regexp.MustCompile(`template: ([^\s:()]+):(\d+):(\d+): executing "`)
	// valuePath finds the values that an action names from the root.
	valuePath = regexp.MustCompile(`(?:^|[\s(|{])\$?\.Values((?:\.\w+)+)`)
)

// valuesNamed is the maximum number of values of a failed action in a message, longestValue the maximum length of
// each, and longestRead the number of bytes of the action that are read.
const (
	valuesNamed  = 3
	longestValue = 128
	longestRead  = 4 << 10
)

// namedValues are the paths of the values that a chart's template names in the failed action, as users write them;
// none if they are unknown.
func namedValues(chart *helmchart.Chart, problem string) []string {
	found := executing.FindAllStringSubmatch(problem, -1)
	if len(found) == 0 || strings.Contains(problem, "error calling "+tplFunction) { // positions are in a text from the values
		return nil
	}
	last := found[len(found)-1]
	content, scope, isFound := templateOf(chart, last[1], nil)
	at, isIn := placeIn(content, last[2], last[3])
	if !isFound || !isIn {
		return nil
	}
	for at > 0 && isOfPath(content[at-1]) { // the position of a path is that of its second name
		at--
	}
	paths := valuePath.FindAllStringSubmatch(content[at:min(endOfCommand(content, at), at+longestRead)], -1)
	switch {
	case len(paths) > 0 && (content[at] == '.' || content[at] == '$'):
		paths = paths[:1] // the following paths are another argument
	case paths == nil: // the value was piped
		from := max(strings.LastIndex(content[:at], actionMark), at-longestRead, 0)
		paths = valuePath.FindAllStringSubmatch(content[from:at], -1)
	}
	var named []string
	for _, one := range paths {
		keys := append(slices.Clip(scope), one[1][1:])
		if strings.HasPrefix(one[1], ".global.") { // all charts have these
			keys = keys[len(scope):]
		}
		if name := text.Cut(strings.Join(keys, "."), longestValue); !slices.Contains(named, name) {
			named = append(named, name)
		}
	}
	return named
}

// placeIn finds the position of a line and a byte of it, which Helm writes as numbers. False: the text has no such
// position.
func placeIn(content, lineText, byteText string) (at int, isIn bool) {
	line, _ := strconv.Atoi(lineText)
	at, _ = strconv.Atoi(byteText)
	lines := strings.SplitAfter(content, "\n")
	if line < 1 || line > len(lines) || at > len(lines[line-1]) {
		return 0, false
	}
	for _, before := range lines[:line-1] {
		at += len(before)
	}
	return at, true
}

func isOfPath(char byte) bool {
	return char == '.' || char == '$' || char == '_' || '0' <= char && char <= '9' || 'a' <= char && char <= 'z' || 'A' <= char && char <= 'Z'
}

// templateOf finds a template of a chart or its dependencies by Helm's name for it. Scope are the keys of the values that it sees.
func templateOf(chart *helmchart.Chart, name string, scope []string) (content string, below []string, isFound bool) {
	for _, file := range chart.Templates {
		if path.Join(chart.ChartFullPath(), file.Name) == name {
			return string(file.Data), scope, true
		}
	}
	for _, dependency := range chart.Dependencies() {
		if content, below, isFound = templateOf(dependency, name, append(slices.Clip(scope), dependency.Name())); isFound {
			return content, below, true
		}
	}
	return "", nil, false
}

// withValues adds the values that a failed template names in front of Helm's message.
func withValues(chart *helmchart.Chart, whole, problem string) string {
	named := namedValues(chart, whole)
	if len(named) == 0 {
		return problem
	}
	return fmt.Sprintf("it can't use the value at %s: %s; Helm's message: %s", text.Names(named, valuesNamed), correctValues, problem)
}
