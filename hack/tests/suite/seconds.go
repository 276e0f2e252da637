package suite

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// SecondsFile is where the times are kept, below the checkout.
const SecondsFile = "hack/tests/suite/seconds.txt"

//go:embed seconds.txt
var measured string

// Seconds is how long packages take in their short form, by their folder. It decides the order in which they run, and
// what `make check` leaves out; no test fails by it.
type Seconds map[string]float64

const (
	// usual is how long a package takes that the file does not name.
	usual = 1
	// fewest is what is worth a line of the file.
	fewest = 3
)

// Measured are the times of the file.
func Measured() (Seconds, error) { return parseSeconds(measured) }

func parseSeconds(text string) (Seconds, error) {
	found := Seconds{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) != 2 {
			return nil, fmt.Errorf("%s: %q is not a folder and its seconds", SecondsFile, strings.TrimSpace(line))
		}
		value, err := strconv.ParseFloat(fields[1], 64)
		if err != nil || value < 0 {
			return nil, fmt.Errorf("%s: %q is no number of seconds", SecondsFile, fields[1])
		}
		found[fields[0]] = value
	}
	return found, nil
}

// Of is how long the package of a folder takes.
func (s Seconds) Of(folder string) float64 {
	if value, ok := s[folder]; ok {
		return value
	}
	return usual
}

// With is what a run adds: its times replace those of before. Packages that are gone, and those that take little
// time, are left out.
func (s Seconds) With(run Seconds, packages []Package) Seconds {
	there := map[string]bool{}
	for _, one := range packages {
		there[one.Folder] = true
	}
	merged := maps.Clone(s)
	maps.Copy(merged, run)
	maps.DeleteFunc(merged, func(folder string, value float64) bool { return !there[folder] || value < fewest })
	return merged
}

// String is the content of the file.
func (s Seconds) String() string {
	var text strings.Builder
	text.WriteString("# Seconds that packages take in `make test`; `go run ./hack/tests -record` writes them.\n")
	folders := slices.SortedFunc(maps.Keys(s), func(a, b string) int {
		return cmp.Or(cmp.Compare(s[b], s[a]), cmp.Compare(a, b))
	})
	for _, folder := range folders {
		fmt.Fprintf(&text, "%s %.0f\n", folder, s[folder])
	}
	return text.String()
}
