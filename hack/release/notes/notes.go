// Package notes takes the notes of a release from the changelog.
package notes

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/trellis-addons/trellis/hack/images/checkout"
)

// Changelog is a text in the format of keepachangelog.com.
type Changelog string

// unreleased is the section of what no release has yet.
const unreleased = "Unreleased"

// heading begins a section: a version, with or without brackets and v, and what follows, or Unreleased.
var heading = regexp.MustCompile(`(?m)^## \[?v?([^]\s]+)\]?.*$`)

// Versions are those that have a section.
func (c Changelog) Versions() []string {
	var versions []string
	for _, found := range heading.FindAllStringSubmatch(string(c), -1) {
		if found[1] != unreleased {
			versions = append(versions, found[1])
		}
	}
	return versions
}

// link leads to a file of the checkout.
var link = regexp.MustCompile(`\]\(([^():#]+)(#[^()]*)?\)`)

// Notes are the section of a version, or Unreleased of one that is no release; a release without a
// section is an error. Links lead to the commit.
func (c Changelog) Notes(stamp checkout.Stamp) (string, error) {
	section, found := c.section(stamp.Version)
	if !found && !stamp.IsRelease() {
		section, found = c.section(unreleased)
	}
	if !found {
		return "", fmt.Errorf("the changelog has no section %s", stamp.Version)
	}
	commit, _, _ := strings.Cut(stamp.Commit, "-")
	section = link.ReplaceAllString(section, "](https://github.com/trellis-addons/trellis/blob/"+commit+"/$1$2)")
	return "# Trellis " + stamp.Version + "\n\n" + section + "\n", nil
}

// section is what stands between a heading and the next one.
func (c Changelog) section(name string) (string, bool) {
	at := heading.FindAllStringSubmatchIndex(string(c), -1)
	for i, one := range at {
		if string(c)[one[2]:one[3]] != name {
			continue
		}
		end := len(c)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		return strings.TrimSpace(string(c)[one[1]:end]), true
	}
	return "", false
}
