package catalogue

import (
	"fmt"

	"github.com/Masterminds/semver/v3"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/lru"
)

// Range is a parsed range of versions, read-only and fit for use by several goroutines.
type Range struct {
	text        string
	constraints *semver.Constraints
}

// RangeError says that a text is no range of versions.
type RangeError struct {
	// Range is the text.
	Range string
	err   error
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("range %q can't be parsed: write it like \">= 1.34, < 1.38\" or \"1.x\"", e.Range)
}

// Unwrap gives the parser's error.
func (e *RangeError) Unwrap() error { return e.err }

// ParseRange reads a range. Catalogues use few ranges many times, so what was parsed is remembered.
func ParseRange(text string) (*Range, error) {
	known, ok := parsedRanges.Get(text)
	if !ok {
		known = parseRange(text)
		parsedRanges.Put(text, known, lru.Forever)
	}
	return known.parsed, known.err
}

// CheckGitRef says whether the range of a reference, if it has one, can be read. Errors: *RangeError.
func CheckGitRef(ref *v1.GitRef) error {
	if ref == nil || ref.Semver == "" {
		return nil
	}
	_, err := ParseRange(string(ref.Semver))
	return err
}

// Contains says whether a version lies in the range; a pre-release only if the range names one or preReleases is set.
func (r *Range) Contains(version *semver.Version, preReleases bool) bool {
	if !preReleases {
		return r.constraints.Check(version)
	}
	wide := *r.constraints
	wide.IncludePrerelease = true
	return wide.Check(version)
}

// rangesKept is some times the number of distinct ranges that large catalogues have.
const rangesKept = 4096

// parsedRanges are those that catalogues used last.
var parsedRanges = lru.New[string, rangeResult](rangesKept, nil)

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

// constraintRange is one parsed constraint of a version. A nil one fits every platform.
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
