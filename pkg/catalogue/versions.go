package catalogue

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// describeTail is what git-describe appends to a tag: the number of commits since and the abbreviated commit.
var describeTail = regexp.MustCompile(`-[0-9]+-g[0-9a-f]{4,40}(-dirty)?$`)

// preRelease is a suffix that stands for a release that is still to come. All other suffixes of a platform's version come
// from vendors (-gke.100, -eks-113cf36, -do.0) and say nothing about what the version offers.
var preRelease = regexp.MustCompile(`(?i)^(alpha|beta|rc|pre|preview|dev|snapshot|nightly|canary)([.-]?[0-9]+(\.[0-9]+)*)?([.+-]|$)`)

// PlatformVersion reads the version of KKP or of a Kubernetes cluster as it is found in the wild. It loses a leading v,
// git-describe tails, build metadata and vendors' suffixes; a true pre-release stays. False: the text is no version with
// at least major and minor, such as a nightly build's commit hash.
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

// truePreRelease is the part of a suffix that marks a release still to come; empty where it marks something else.
func truePreRelease(suffix string) string {
	match := preRelease.FindStringSubmatch(suffix)
	if match == nil {
		return ""
	}
	return match[1] + match[2]
}

// addonVersion reads an add-on's version; nil where it is no semantic version. Short forms count: v1 is 1.0.0.
func addonVersion(text string) *semver.Version {
	parsed, err := semver.NewVersion(text)
	if err != nil {
		return nil
	}
	return parsed
}

// Key is the identity of an add-on's version: two spellings of one semantic version have the same key. A leading v and
// build metadata don't count, and missing numbers are zero, so v1, 1.0.0 and 1.0.0+build are one version. A text that is
// no semantic version is its own key.
func Key(version string) string {
	return key(version, addonVersion(version))
}

func key(text string, parsed *semver.Version) string {
	if parsed == nil {
		return text
	}
	// Built from its parts, since String keeps build metadata.
	bare, err := parsed.SetMetadata("")
	if err != nil {
		return text
	}
	return bare.String()
}

// Compare orders two versions of an add-on: semantic versions by precedence, other texts below them and by their bytes.
// 0 means that both are the same version.
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

// IsRange tells a range of versions from an exact one: a range has one of <>=~^*,|, a space, or an x for a number.
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
