package catalogue

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/lru"
)

// describeTail is the suffix of git-describe: the number of commits and the abbreviated commit.
var describeTail = regexp.MustCompile(`-[0-9]+-g[0-9a-f]{4,40}(-dirty)?$`)

// preRelease matches suffixes of pre-releases. Other suffixes come from vendors (-gke.100, -eks-113cf36, -do.0) and
// don't change the features of the version.
var preRelease = regexp.MustCompile(`(?i)^(alpha|beta|rc|pre|preview|dev|snapshot|nightly|canary)([.-]?[0-9]+(\.[0-9]+)*)?([.+-]|$)`)

// PlatformVersion parses a version of KKP or Kubernetes. It removes a leading v, git-describe
// tails, build metadata and vendors' suffixes, but not a true pre-release. False: the text has no
// major and minor number, as a nightly build's commit hash.
func PlatformVersion(text string) (*semver.Version, bool) {
	text = describeTail.ReplaceAllString(strings.TrimSpace(text), "")
	core, _, _ := strings.Cut(text, "+")
	core, suffix, _ := strings.Cut(core, "-")
	if !strings.Contains(core, ".") {
		return nil, false
	}
	parsed, err := semver.NewVersion(core)
	if err != nil {
		return nil, false
	}
	suffix, _, _ = strings.Cut(suffix, "+")
	release, err := parsed.SetPrerelease(truePreRelease(suffix))
	if err != nil {
		return nil, false
	}
	return &release, true
}

func truePreRelease(suffix string) string {
	match := preRelease.FindStringSubmatch(suffix)
	if match == nil {
		return ""
	}
	return match[1] + match[2]
}

// addonVersion parses a semantic version, also in short form (v1 is 1.0.0), or returns nil.
func addonVersion(text string) *semver.Version {
	parsed, err := semver.NewVersion(text)
	if err != nil {
		return nil
	}
	return parsed
}

// Key is the identity of an add-on's version. A leading v and build metadata don't count, and missing numbers are
// zero: v1, 1.0.0 and 1.0.0+build are one version. A text that is no semantic version is its own key.
func Key(version string) string {
	return key(version, addonVersion(version))
}

func key(text string, parsed *semver.Version) string {
	if parsed == nil {
		return text
	}
	// Version.String would keep build metadata.
	bare, err := parsed.SetMetadata("")
	if err != nil {
		return text
	}
	return bare.String()
}

// Compare orders two versions of an add-on: semantic versions by precedence, above other texts,
// which are ordered by bytes. 0 means the same version.
func Compare(a, b string) int {
	return compare(a, addonVersion(a), b, addonVersion(b))
}

func compare(a string, parsedA *semver.Version, b string, parsedB *semver.Version) int {
	switch {
	case parsedA != nil && parsedB != nil:
		return parsedA.Compare(parsedB)
	case parsedA != nil:
		return 1
	case parsedB != nil:
		return -1
	}
	return cmp.Compare(a, b)
}

// IsRange reports whether a text is a range: it has one of <>=~^*,|, a space, or an x for a number.
func IsRange(wanted string) bool {
	if strings.ContainsAny(wanted, "<>=~^*,| ") {
		return true
	}
	core, _, _ := strings.Cut(wanted, "+")
	core, _, _ = strings.Cut(core, "-")
	for part := range strings.SplitSeq(strings.TrimPrefix(core, "v"), ".") {
		if part == "x" || part == "X" {
			return true
		}
	}
	return false
}

// Range is a parsed range of versions, read-only and safe for concurrent use.
type Range struct {
	text        string
	constraints *semver.Constraints
}

// RangeError reports that a text is no range of versions.
type RangeError struct {
	Range string
	err   error
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("range %q can't be parsed: write it like \">= 1.34, < 1.38\" or \"1.x\"", e.Range)
}

func (e *RangeError) Unwrap() error { return e.err }

// ParseRange parses a range. It caches results, since catalogues repeat a few ranges.
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

// Contains reports whether the range has a version; a pre-release only if either of them allows it.
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

// IsEmptyRange reports whether a range has no version: neither the lowest, nor one that it names, nor one after that.
// "" and texts that are no ranges are not empty.
func IsEmptyRange(text string) bool {
	parsed, err := ParseRange(text)
	if text == "" || err != nil {
		return false
	}
	candidates := []semver.Version{*semver.New(0, 0, 0, "", "")}
	for _, word := range versionWords.FindAllString(text, -1) {
		if at, err := semver.NewVersion(word); err == nil {
			later, _ := at.SetPrerelease(at.Prerelease() + ".0") // the release itself if it is no pre-release
			candidates = append(candidates, *at, later, at.IncPatch(), at.IncMinor(), at.IncMajor())
		}
	}
	return !slices.ContainsFunc(candidates, func(one semver.Version) bool { return parsed.Contains(&one, true) })
}

// SampleKubernetes is the release of Kubernetes for a check of a version: the lowest minor that its constraints
// admit, starting with the oldest that Trellis supports; otherwise one that they name, or the one after that. Empty:
// none of these fits.
func SampleKubernetes(version *v1.AddonVersion) string {
	const oldest, newest = 34, 99
	first := semver.New(1, oldest, 0, "", "")
	_, needed := readConstraints(version)
	if needed == nil || needed.parsed == nil {
		return first.String()
	}
	var candidates []semver.Version
	for minor := uint64(oldest); minor < newest; minor++ {
		candidates = append(candidates, *semver.New(1, minor, 0, "", ""))
	}
	for _, word := range versionWords.FindAllString(needed.text, -1) {
		if at, err := semver.NewVersion(word); err == nil {
			candidates = append(candidates, *at, at.IncPatch())
		}
	}
	for i := range candidates {
		if one := &candidates[i]; !one.LessThan(first) && needed.parsed.Contains(one, false) {
			return one.String()
		}
	}
	return ""
}

// versionWords are the versions in a range, without wildcards.
var versionWords = regexp.MustCompile(`[0-9]+(\.[0-9]+){0,2}(-[0-9A-Za-z.-]+)?`)

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
