package helmrepo

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
	"github.com/trellis-addons/trellis/pkg/values"
)

type version struct {
	Version string
	// Digest is "sha256:<hex>" or empty.
	Digest string
	URL    string
}

type entry struct {
	Version string   `json:"version"`
	Digest  string   `json:"digest"`
	URLs    []string `json:"urls"`
}

var digestPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// urlLimit is the maximum length of an archive's URL.
const urlLimit = 4096

// versionsOf returns usable entries. Like Helm, it ignores null entries and those without version or URL, which do occur
// (CVE-2025-55198, CVE-2024-26147: Helm crashed), and versions that are too long to be requested.
func versionsOf(entries []*entry) []version {
	versions := []version{}
	for _, entry := range entries {
		if entry == nil || entry.Version == "" || len(entry.Version) > versionLimit || len(entry.URLs) == 0 || entry.URLs[0] == "" {
			continue
		}
		digest := strings.ToLower(strings.TrimPrefix(entry.Digest, "sha256:"))
		if digest != "" {
			digest = "sha256:" + digest
		}
		versions = append(versions, version{Version: entry.Version, Digest: digest, URL: entry.URLs[0]})
	}
	return versions
}

// pick finds the entry for a version: by exact spelling, otherwise as equal semver. Names are charts of the index.
func pick(versions []version, names []string, location Location, repository string) (version, error) {
	if len(versions) == 0 {
		missing := &fetch.NotFoundError{What: fmt.Sprintf("chart %q in %s", location.Chart, repository)}
		if len(names) > 0 {
			missing.Mend = "nearest charts: " + strings.Join(nearest(location.Chart, names), ", ")
		}
		return version{}, missing
	}
	subject := fmt.Sprintf("chart %q version %q in %s", location.Chart, string(location.Version), repository)
	fitting := filter(versions, func(v version) bool { return v.Version == string(location.Version) })
	if len(fitting) == 0 {
		fitting = filter(versions, sameVersion(string(location.Version)))
	}
	switch {
	case len(fitting) == 0:
		return version{}, &fetch.NotFoundError{What: subject, Mend: "known versions: " + newest(versions)}
	case len(fitting) > 1:
		return version{}, &fetch.RefusedError{Subject: subject, Rule: "the index has more than one entry for it"}
	case len(fitting[0].URL) > urlLimit:
		return version{}, &fetch.RefusedError{Subject: subject, Rule: "its address in the index is too long"}
	case fitting[0].Digest != "" && !digestPattern.MatchString(strings.TrimPrefix(fitting[0].Digest, "sha256:")):
		return version{}, &fetch.RefusedError{Subject: subject, Rule: "its digest in the index is not a SHA-256"}
	}
	return fitting[0], nil
}

func filter(versions []version, match func(version) bool) []version {
	matching := []version{}
	for _, version := range versions {
		if match(version) {
			matching = append(matching, version)
		}
	}
	return matching
}

func sameVersion(text string) func(version) bool {
	wanted, err := semver.NewVersion(text)
	return func(candidate version) bool {
		parsed, parseErr := semver.NewVersion(candidate.Version)
		return err == nil && parseErr == nil && parsed.Equal(wanted)
	}
}

// shown is the maximum number of versions, or charts, in a message.
const shown = 5

// nearest are up to five names: first those that differ by a typing error, then those of which one is part of the
// other.
func nearest(name string, names []string) []string {
	alike := map[string]int{}
	for _, other := range names {
		switch {
		case values.IsSlip(name, other):
			alike[other] = 2 * nameLimit
		case strings.Contains(other, name) || strings.Contains(name, other):
			alike[other] = nameLimit + min(len(name), len(other))
		default:
			alike[other] = 0
		}
	}
	sorted := slices.SortedFunc(maps.Keys(alike), func(a, b string) int { return cmp.Or(alike[b]-alike[a], strings.Compare(a, b)) })
	return sorted[:min(shown, len(sorted))]
}

// newest lists up to five versions, the highest first; other texts than semver are last.
func newest(versions []version) string {
	sorted := slices.Clone(versions)
	slices.SortStableFunc(sorted, func(a, b version) int { return -compare(a.Version, b.Version) })
	names := []string{}
	for _, version := range sorted[:min(shown, len(sorted))] {
		names = append(names, strings.Trim(strconv.Quote(cut(version.Version)), `"`))
	}
	return strings.Join(names, ", ")
}

func compare(a, b string) int {
	parsedA, errA := semver.NewVersion(a)
	parsedB, errB := semver.NewVersion(b)
	switch {
	case errA != nil && errB != nil:
		return cmp.Compare(a, b)
	case errA != nil:
		return -1
	case errB != nil:
		return 1
	}
	return parsedA.Compare(parsedB)
}

// Limits of an index's used charts. An entry is decoded at once, and the results stay in memory; the limits of chart
// and entries bound the time. Large charts have a few thousand entries, of a few KiB each.
const (
	entryLimit   = 512 << 10
	chartLimit   = 16 << 20
	resultLimit  = 8 << 20
	entriesLimit = 50_000
	namesLimit   = 1000
)

// readIndex decodes the requested charts of an index: YAML in Helm's block style, or JSON.
func readIndex(from io.Reader, subject string, wanted func(chart string) bool) (map[string][]version, error) {
	buffered := bufio.NewReaderSize(from, 64<<10)
	charts := collection{subject: subject, wanted: wanted, charts: map[string][]version{}}
	first, err := buffered.Peek(1)
	switch {
	case errors.Is(err, io.EOF):
		return nil, charts.refused("it is empty")
	case err != nil:
		return nil, err
	case first[0] == '{':
		err = charts.readJSON(buffered)
	default:
		err = charts.readYAML(buffered)
	}
	return charts.charts, err
}

type collection struct {
	subject string
	wanted  func(chart string) bool
	charts  map[string][]version
	// entries so far, and the bytes that they have together.
	entries, bytes int
}

func (c *collection) refused(rule string) error {
	return &fetch.RefusedError{Subject: c.subject, Rule: rule}
}

func (c *collection) tooLarge(chart string) error {
	return c.refused(fmt.Sprintf("it has an entry of more than %s for chart %q", outbound.Bytes(entryLimit), cut(chart)))
}

func (c *collection) begin(chart string) error {
	if _, ok := c.charts[chart]; ok {
		return c.refused(fmt.Sprintf("the index has chart %q twice", cut(chart)))
	}
	c.charts[chart] = []version{}
	return nil
}

func (c *collection) add(chart string, entries []*entry) error {
	if c.entries += len(entries); c.entries > entriesLimit {
		return c.refused(fmt.Sprintf("it has more than %d entries for the charts that are used", entriesLimit))
	}
	for _, version := range versionsOf(entries) {
		if c.bytes += len(version.Version) + len(version.Digest) + len(version.URL); c.bytes > resultLimit {
			return c.refused("versions and addresses of the charts that are used have more than " + outbound.Bytes(resultLimit))
		}
		c.charts[chart] = append(c.charts[chart], version)
	}
	return nil
}
