// Package parts is what `make test-long` runs: a table of parts, how they are divided into tenths, and which of them
// passed on which commit.
package parts

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trellis-addons/trellis/hack/tests/suite"
)

// Part is one call of go test that takes long.
type Part struct {
	Name string
	// Why says why it is not a part of `make test`.
	Why string
	// Minutes is how long it takes with control planes and Go caches warm, on two processors.
	Minutes int
	// Apart says why no tenth has the part; "": one has it.
	Apart string
	// Packages are folders below the checkout. One with /... at its end is also for all packages below that no other
	// part names more closely.
	Packages []string
	// Race says whether the race detector watches.
	Race bool
	// Run and Skip choose tests by expressions of go test; "" is all, and none.
	Run, Skip string
	// Bench chooses benchmarks in place of tests.
	Bench string
	// Verbose prints what tests log: figures beside their bars.
	Verbose bool
	// Pinned parts make what is the same bytes with one release of Go only, which go.mod names.
	Pinned bool
	// Arguments are those of the tests.
	Arguments []string
}

// limit is how long a package of a part may take on a slow machine. With arguments by hand there is none: they say how long.
const limit = 45 * time.Minute

// Invocations are the part's calls of go test: one for each module that its packages are of. More arguments for the
// tests come after those of the part, and win.
func (p Part) Invocations(all []suite.Package, more []string) []suite.Invocation {
	var calls []suite.Invocation
	for _, root := range []string{".", suite.Kinds} {
		call := suite.Invocation{Root: root, Race: p.Race, Flags: p.flags(len(more) > 0), Arguments: p.arguments(more)}
		for _, one := range p.packages(all) {
			if one.Root() == root {
				call.Folders = append(call.Folders, one.Folder)
			}
		}
		if len(call.Folders) > 0 {
			calls = append(calls, call)
		}
	}
	return calls
}

func (p Part) flags(byHand bool) []string {
	flags := []string{"-count=1", "-timeout=" + limit.String()}
	if byHand {
		flags[1] = "-timeout=0"
	}
	if p.Verbose {
		flags = append(flags, "-v")
	}
	if p.Run != "" {
		flags = append(flags, "-run="+p.Run)
	}
	if p.Skip != "" {
		flags = append(flags, "-skip="+p.Skip)
	}
	if p.Bench != "" {
		// Figures are those of one benchmark at a time.
		flags = append(flags, "-run=^$", "-bench="+p.Bench, "-benchtime=1x", "-p=1")
	}
	return flags
}

func (p Part) arguments(more []string) []string {
	if len(p.Arguments)+len(more) == 0 {
		return nil
	}
	return slices.Concat([]string{"-args"}, p.Arguments, more)
}

// packages are those with tests that the part is for.
func (p Part) packages(all []suite.Package) []suite.Package {
	var found []suite.Package
	for _, one := range all {
		if one.HasTests() && slices.ContainsFunc(p.Packages, func(pattern string) bool {
			return pattern == one.Folder || pattern == home(one.Folder)
		}) {
			found = append(found, one)
		}
	}
	return found
}

// home is the table's pattern for a folder: the folder itself if it is listed, otherwise the longest "/..." pattern
// that covers it.
func home(folder string) string {
	longest := ""
	for _, part := range Parts() {
		if part.Bench != "" {
			continue
		}
		for _, pattern := range part.Packages {
			parent, whole := strings.CutSuffix(pattern, "/...")
			switch {
			case pattern == folder:
				return pattern
			case whole && (folder == parent || strings.HasPrefix(folder, parent+"/")) && len(pattern) > len(longest):
				longest = pattern
			}
		}
	}
	return longest
}

// Named gives the parts of some names with commas between them. A name may be a pattern: kills* are all that begin so.
func Named(names string) ([]Part, error) {
	var found []Part
	for name := range strings.SplitSeq(names, ",") {
		before := len(found)
		for _, part := range Parts() {
			if matches, err := path.Match(name, part.Name); err != nil {
				return nil, fmt.Errorf("part %q: %w", name, err)
			} else if matches {
				found = append(found, part)
			}
		}
		if len(found) == before {
			return nil, fmt.Errorf("there is no part %q: `make test-long LIST=1` lists them", name)
		}
	}
	return found, nil
}

// Tenths divides parts into ten groups that take about equally long, but for those that are apart: the longest part goes
// first, each to the group that has least.
func Tenths(parts []Part) [10][]Part {
	sorted := slices.DeleteFunc(slices.Clone(parts), func(p Part) bool { return p.Apart != "" })
	slices.SortStableFunc(sorted, func(a, b Part) int {
		return cmp.Or(cmp.Compare(b.Minutes, a.Minutes), cmp.Compare(a.Name, b.Name))
	})
	var tenths [10][]Part
	for _, part := range sorted {
		least := 0
		for i := range tenths {
			if Minutes(tenths[i]) < Minutes(tenths[least]) {
				least = i
			}
		}
		tenths[least] = append(tenths[least], part)
	}
	return tenths
}

// Minutes is how long parts take together.
func Minutes(parts []Part) int {
	sum := 0
	for _, part := range parts {
		sum += part.Minutes
	}
	return sum
}

// TenthOf says which tenth is the turn of a commit, by its hash, or of a rotation: over many commits all of them come.
func TenthOf(commit string) int {
	number, err := strconv.ParseUint(commit[:min(8, len(commit))], 16, 64)
	if err != nil {
		return 0
	}
	return int(number % 10)
}
