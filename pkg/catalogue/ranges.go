package catalogue

import (
	"fmt"

	"github.com/Masterminds/semver/v3"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/lru"
)

// Range is a parsed range of versions, read-only and safe for concurrent use.
type Range struct {
	text        string
	constraints *semver.Constraints
}

type RangeError struct {
	Range string
	err   error
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("range %q can't be parsed: write it like \">= 1.34, < 1.38\" or \"1.x\"", e.Range)
}

func (e *RangeError) Unwrap() error { return e.err }

// ParseRange parses a range. It caches results, as catalogues repeat a few ranges.
func ParseRange(text string) (*Range, error) {
	known, ok := parsedRanges.Get(text)
	if !ok {
		known = parseRange(text)
		parsedRanges.Put(text, known, lru.Forever)
	}
	return known.parsed, known.err
}

// CheckGitRef checks the range of a reference, if it has one. Errors: *RangeError.
func CheckGitRef(ref *v1.GitRef) error {
	if ref == nil || ref.Semver == "" {
		return nil
	}
	_, err := ParseRange(string(ref.Semver))
	return err
}

// Contains says whether the range has a version. A pre-release needs preReleases, or a range that
// names one.
func (r *Range) Contains(version *semver.Version, preReleases bool) bool {
	if !preReleases {
		return r.constraints.Check(version)
	}
	wide := *r.constraints
	wide.IncludePrerelease = true
	return wide.Check(version)
}

// cachedRanges is several times the number of distinct ranges in large catalogues.
const cachedRanges = 4096

var parsedRanges = lru.New[string, rangeResult](cachedRanges, nil)

type rangeResult struct {
	parsed *Range
	err    error
}

func parseRange(text string) rangeResult {
	constraints, err := semver.NewConstraint(text)
	if err != nil {
		return rangeResult{err: &RangeError{Range: text, err: err}}
	}
	return rangeResult{parsed: &Range{text: text, constraints: constraints}}
}

// constraintRange is one parsed constraint of a version; nil fits every platform.
type constraintRange struct {
	text   string
	parsed *Range
	err    error
}

func readConstraint(text v1.VersionRange) *constraintRange {
	if text == "" {
		return nil
	}
	parsed, err := ParseRange(string(text))
	return &constraintRange{text: string(text), parsed: parsed, err: err}
}
