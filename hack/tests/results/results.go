// Package results reads what go test prints: which packages passed and how long they took, and, from its JSON, which
// tests passed.
package results

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// State is how a package ended.
type State string

// The states of a package. Cached ones passed before and did not run.
const (
	Passed State = "passed"
	Cached State = "cached"
	Failed State = "failed"
)

// Package is the end of one package.
type Package struct {
	// Path is the import path.
	Path    string
	State   State
	Seconds float64
}

var (
	passedLine = regexp.MustCompile(`^ok  \t(\S+)\t(?:(\d+\.\d+)s|(\(cached\)))`)
	failedLine = regexp.MustCompile(`^FAIL\t(\S+)(?:\t(\d+\.\d+)s| \[.*\])`)
)

// Line reads the line by which go test ends a package; false means that it is another line.
func Line(line string) (Package, bool) {
	if match := passedLine.FindStringSubmatch(line); match != nil {
		if match[3] != "" {
			return Package{Path: match[1], State: Cached}, true
		}
		return Package{Path: match[1], State: Passed, Seconds: number(match[2])}, true
	}
	if match := failedLine.FindStringSubmatch(line); match != nil {
		return Package{Path: match[1], State: Failed, Seconds: number(match[2])}, true
	}
	return Package{}, false
}

func number(text string) float64 {
	value, _ := strconv.ParseFloat(text, 64) // "" is no time: the package was not built
	return value
}

// Event is one line of the output of `go test -json`.
type Event struct {
	Action     string
	Package    string
	Test       string
	Output     string
	ImportPath string
}

// Report turns the JSON of go test into what go test prints without it: of tests that failed their output, of
// packages their end.
type Report struct {
	kept map[string][]string
}

// Add takes one line and gives the text that is to be printed for it. A line that is no JSON comes as it is.
func (r *Report) Add(line string) string {
	var event Event
	if err := json.Unmarshal([]byte(line), &event); err != nil {
		return line + "\n"
	}
	if r.kept == nil {
		r.kept = map[string][]string{}
	}
	key := event.Package + " " + event.Test
	switch {
	case event.Action == "build-output":
		return event.Output
	case event.Action == "output" && event.Test != "":
		r.kept[key] = append(r.kept[key], event.Output)
	case event.Action == "output" && event.Output != "PASS\n":
		return event.Output
	case event.Action == "fail" && event.Test != "":
		return strings.Join(r.take(key), "")
	case event.Action == "pass" || event.Action == "skip":
		r.take(key)
	}
	return ""
}

// Rest is the output of tests that did not end, since the process ended before.
func (r *Report) Rest() string {
	var text strings.Builder
	keys := make([]string, 0, len(r.kept))
	for key := range r.kept {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		text.WriteString(strings.Join(r.take(key), ""))
	}
	return text.String()
}

func (r *Report) take(key string) []string {
	lines := r.kept[key]
	delete(r.kept, key)
	return lines
}

// worth is how many seconds a package takes that has a line of its own in a table.
const worth = 1

// Table are lines that say how long packages took, the slowest first, a package of several calls once. Packages that took
// little have a line together, and so do all.
func Table(all []Package) string {
	took, sum, little, cached := map[string]float64{}, 0.0, 0, 0
	for _, one := range all {
		took[one.Path], sum = took[one.Path]+one.Seconds, sum+one.Seconds
		if one.State == Cached {
			cached++
		}
	}
	paths := slices.SortedFunc(maps.Keys(took), func(a, b string) int {
		return cmp.Or(cmp.Compare(took[b], took[a]), cmp.Compare(a, b))
	})
	var text strings.Builder
	for _, path := range paths {
		if took[path] < worth {
			little++
			continue
		}
		fmt.Fprintf(&text, "%8.1f s  %s\n", took[path], path)
	}
	fmt.Fprintf(&text, "%8.1f s  all %d packages, %d of them in less than %d s, of which %d cached\n", sum, len(paths), little, worth, cached)
	return text.String()
}
