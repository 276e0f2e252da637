package git

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/Masterminds/semver/v3"

	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/fetch"
)

// refLimit is the maximum length of a branch, tag or range, in bytes.
const refLimit = 250

var commitPattern = regexp.MustCompile(`^[0-9a-f]{40}$`)

// wanted is a checked reference: exactly one of the fields is set.
type wanted struct {
	branch, tag, commit string
	versions            *semver.Constraints
	text                string // for errors
}

func want(location Location) (wanted, error) {
	set := 0
	for _, field := range []fetch.Selector{location.Branch, location.Tag, location.Commit, location.Semver} {
		if field != "" {
			set++
		}
	}
	if set != 1 {
		return wanted{}, &fetch.RefusedError{Subject: "the git reference", Rule: "set exactly one of branch, tag, commit and semver"}
	}
	switch {
	case location.Commit != "":
		return wantCommit(strings.ToLower(string(location.Commit)))
	case location.Semver != "":
		return wantVersions(string(location.Semver))
	case location.Tag != "":
		tag := string(location.Tag)
		return wanted{tag: tag, text: fmt.Sprintf("tag %q", tag)}, CheckRef(tag)
	}
	branch := string(location.Branch)
	return wanted{branch: branch, text: fmt.Sprintf("branch %q", branch)}, CheckRef(branch)
}

func wantCommit(commit string) (wanted, error) {
	if !commitPattern.MatchString(commit) {
		return wanted{}, refusedRef(commit, "write a commit as its full hash, 40 hexadecimal digits")
	}
	return wanted{commit: commit, text: "commit " + commit}, nil
}

func wantVersions(text string) (wanted, error) {
	if len(text) > refLimit {
		return wanted{}, refusedRef(text, "the range is too long")
	}
	versions, err := semver.NewConstraint(text)
	if err != nil {
		return wanted{}, refusedRef(text, "it is not a semver range")
	}
	return wanted{versions: versions, text: fmt.Sprintf("a tag in range %q", text)}, nil
}

// CheckRef checks a branch or tag name by git-check-ref-format and more: it refuses names that could be another kind
// of reference, or an option of a program.
func CheckRef(name string) error {
	if len(name) > refLimit {
		return refusedRef(name, "the name is too long")
	}
	if rule := refRule(name); rule != "" {
		return refusedRef(name, rule)
	}
	return nil
}

func refRule(name string) string {
	switch {
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unfit):
		return "the name has a character that git does not allow"
	case commitPattern.MatchString(strings.ToLower(name)):
		return "it is the hash of a commit: set commit instead"
	case name == "HEAD" || name == "@" || strings.HasPrefix(name, "refs/"):
		return "it is not a name of a branch or tag"
	case strings.Contains(name, "..") || strings.Contains(name, "@{") || strings.HasSuffix(name, "."):
		return "the name has a sequence that git does not allow"
	}
	for component := range strings.SplitSeq(name, "/") {
		if component == "" || component[0] == '.' || component[0] == '-' || strings.HasSuffix(component, ".lock") {
			return "the name has a component that git does not allow"
		}
	}
	return ""
}

func unfit(r rune) bool {
	return r <= ' ' || !unicode.IsPrint(r) || strings.ContainsRune(`~^:?*[\`, r)
}

func refusedRef(name, rule string) error {
	const shown = 80
	return &fetch.RefusedError{Subject: fmt.Sprintf("git ref %q", text.Cut(name, shown)), Rule: rule}
}
