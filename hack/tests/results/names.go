package results

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// longestLine is the most bytes that one event of go test may have: the output of a test is cut into lines.
const longestLine = 64 << 20

// PassedTests are the names of all tests and subtests that passed, as "package test/subtest", sorted. A test that was
// skipped did not pass. The part that all packages have in common is left out.
func PassedTests(module string, outputs ...io.Reader) ([]string, error) {
	names := map[string]bool{}
	for _, output := range outputs {
		lines := bufio.NewScanner(output)
		lines.Buffer(nil, longestLine)
		for lines.Scan() {
			var event Event
			if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
				continue // what the go command itself says is no JSON
			}
			if event.Action == "pass" && event.Test != "" {
				names[strings.TrimPrefix(event.Package, module+"/")+" "+event.Test] = true
			}
		}
		if err := lines.Err(); err != nil {
			return nil, err
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// Rename says that a test, with its subtests, has another name now, or that its package has.
type Rename struct{ Old, New string }

// ParseRenames reads lines "package test -> package test", and "package -> package" where a whole package moved.
// Empty lines and those that begin with # say nothing.
func ParseRenames(text string) ([]Rename, error) {
	var renames []Rename
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		before, after, found := strings.Cut(line, " -> ")
		before, after = strings.TrimSpace(before), strings.TrimSpace(after)
		if !found || before == "" || after == "" || strings.Contains(before, " ") != strings.Contains(after, " ") {
			return nil, fmt.Errorf("%q is not \"package test -> package test\", nor \"package -> package\"", line)
		}
		renames = append(renames, Rename{before, after})
	}
	return renames, nil
}

// of gives what a rename makes of a name; false where it is about another.
func (r Rename) of(name string) (string, bool) {
	rest, found := strings.CutPrefix(name, r.Old)
	if !found || rest != "" && rest[0] != '/' && rest[0] != ' ' {
		return "", false
	}
	if rest != "" && rest[0] == '/' && !strings.Contains(r.Old, " ") {
		return "", false // the package is another one, below that of the rename
	}
	return r.New + rest, true
}

// Difference is what a comparison of names found.
type Difference struct {
	// Missing are names of before that are not among those of after.
	Missing []string
	// Masked are pairs of names that are the same but for numbers and addresses, which differ from run to run: "before =
	// after".
	Masked []string
	// Idle are renames that no name of before needed.
	Idle []string
}

// Compare says which names of before are not among those of after. A name that is there counts as found. Of the
// others, each is found where a name of after is the same but for numbers and addresses, and is no other's: three
// names of before need three of after, so that a case that is gone is missing whatever its number was.
func Compare(before, after []string, renames []Rename) Difference {
	left := map[string]bool{}
	for _, name := range after {
		left[name] = true
	}
	var difference Difference
	var open []string
	used := map[Rename]bool{}
	for _, name := range before {
		now := renamed(name, renames, used)
		if left[now] {
			delete(left, now)
		} else {
			open = append(open, now)
		}
	}
	free := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		free[masked(name)] = append(free[masked(name)], name)
	}
	for _, name := range open {
		key := masked(name)
		if same := free[key]; len(same) > 0 && key != name {
			difference.Masked = append(difference.Masked, name+" = "+same[0])
			free[key] = same[1:]
			continue
		}
		difference.Missing = append(difference.Missing, name)
	}
	for _, rename := range renames {
		if !used[rename] {
			difference.Idle = append(difference.Idle, rename.Old+" -> "+rename.New)
		}
	}
	return difference
}

// renamed is the name that a test has now: the rename with the longest old name counts.
func renamed(name string, renames []Rename, used map[Rename]bool) string {
	best, now := Rename{}, name
	for _, rename := range renames {
		if other, ok := rename.of(name); ok && len(rename.Old) > len(best.Old) {
			best, now = rename, other
		}
	}
	if best.Old != "" {
		used[best] = true
	}
	return now
}

// Numbers and addresses that differ from run to run are in names of subtests alone, after the first slash of the test.
var (
	digits = regexp.MustCompile(`[0-9]+`)
	hashes = regexp.MustCompile(`\b[0-9a-f]{8,}\b`)
)

func masked(name string) string {
	space := strings.Index(name, " ")
	slash := strings.Index(name[space+1:], "/")
	if space < 0 || slash < 0 {
		return name
	}
	at := space + 1 + slash
	return name[:at] + digits.ReplaceAllString(hashes.ReplaceAllString(name[at:], "#"), "#")
}
