package gotemplate

import (
	"fmt"
	"regexp"
	"strings"
)

const (
	defaultDomain = "docker.io"
	legacyDomain  = "index.docker.io"
	officialPath  = "library/"
)

// reference is the grammar of image references: domain and path, tag, digest.
var reference = regexp.MustCompile(
	`^((?:[a-zA-Z0-9.-]+(?::[0-9]+)?/)?[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*)` +
		`(:[\w][\w.-]{0,127})?(@[A-Za-z][A-Za-z0-9]*:[0-9a-fA-F]{32,})?$`)

// image writes a reference out in full, and puts another registry in place of its own where one is set. Path, tag and
// digest stay.
func image(text, registry string) (string, error) {
	match := reference.FindStringSubmatch(text)
	if match == nil {
		return "", fmt.Errorf("an image reference that is none")
	}
	domain, path := defaultDomain, match[1]
	if first, rest, ok := strings.Cut(match[1], "/"); ok && isDomain(first) {
		domain, path = first, rest
	}
	if domain == legacyDomain {
		domain = defaultDomain
	}
	if domain == defaultDomain && !strings.Contains(path, "/") {
		path = officialPath + path
	}
	if registry != "" {
		domain = registry
	}
	return domain + "/" + path + match[2] + match[3], nil
}

// isDomain tells a registry from the first part of a path.
func isDomain(part string) bool {
	return strings.ContainsAny(part, ".:") || part == "localhost" || strings.ToLower(part) != part
}
