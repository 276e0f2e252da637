package archive

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/text"
)

// Limits of names: those of Linux file systems, and a depth above that of sensible trees.
const (
	componentLimit = 255
	nameLimit      = 1024
	depthLimit     = 100
)

// CheckName says why a slash-separated relative name can't be used, or nil. Names are not cleaned,
// so each has one spelling.
func CheckName(name string) error {
	if rule := NameRule(name); rule != "" {
		return refused(name, rule)
	}
	return nil
}

// NameRule returns the rule that a name breaks, or "".
func NameRule(name string) string {
	switch {
	case name == "":
		return "the name is empty"
	case len(name) > nameLimit:
		return fmt.Sprintf("the name is longer than %d bytes", nameLimit)
	case !utf8.ValidString(name):
		return "the name is not UTF-8"
	case strings.HasPrefix(name, "/"):
		return "the name is absolute"
	case strings.Contains(name, `\`):
		return "the name has a backslash"
	case strings.ContainsFunc(name, unicode.IsControl):
		return "the name has a control character"
	case len(name) > 1 && name[1] == ':':
		return "the name has a drive letter"
	case strings.Count(name, "/") >= depthLimit:
		return fmt.Sprintf("it lies deeper than %d folders", depthLimit)
	}
	for component := range strings.SplitSeq(name, "/") {
		switch {
		case component == "" || component == ".":
			return "the name has an empty component"
		case component == "..":
			return "the name leads out of its folder"
		case len(component) > componentLimit:
			return fmt.Sprintf("the name has a component longer than %d bytes", componentLimit)
		}
	}
	return ""
}

// CleanPath brings a reference's path into the spelling of CheckName: "" is the top.
func CleanPath(given string) (string, error) {
	trimmed := strings.TrimSuffix(given, "/")
	for strings.HasPrefix(trimmed, "./") {
		trimmed = strings.TrimPrefix(trimmed, "./")
	}
	if trimmed == "." || trimmed == "" && !strings.HasPrefix(given, "/") {
		return "", nil
	}
	if err := CheckName(trimmed); err != nil {
		return "", err
	}
	return path.Clean(trimmed), nil
}

func refused(name, rule string) error {
	const shown = 256
	return &fetch.RefusedError{Subject: fmt.Sprintf("path %q", text.Cut(name, shown)), Rule: rule}
}
