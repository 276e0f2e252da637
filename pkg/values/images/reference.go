package images

import (
	"regexp"
	"strings"
)

const (
	defaultDomain = "docker.io"
	legacyDomain  = "index.docker.io"
	officialPath  = "library/"
	maxReference  = 1024
)

// grammar of image references: domain and path, tag, digest.
var grammar = regexp.MustCompile(
	`^((?:[a-zA-Z0-9.-]+(?::[0-9]+)?/)?[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*)` +
		`(:[\w][\w.-]{0,127})?(@[A-Za-z][A-Za-z0-9]*:[0-9a-fA-F]{32,})?$`)

// Reference is an expanded image reference.
type Reference struct {
	// Domain is the registry, such as docker.io or registry.example.com:5000.
	Domain string
	// Path is the repository, such as library/nginx.
	Path string
	// Tag and Digest begin with ":" and "@"; empty for none.
	Tag, Digest string
}

// Parse reads a reference; ok is false if it is not one.
func Parse(text string) (reference Reference, ok bool) {
	if len(text) > maxReference {
		return Reference{}, false
	}
	match := grammar.FindStringSubmatch(text)
	if match == nil {
		return Reference{}, false
	}
	reference = Reference{Domain: defaultDomain, Path: match[1], Tag: match[2], Digest: match[3]}
	if first, rest, found := strings.Cut(match[1], "/"); found && isDomain(first) {
		reference.Domain, reference.Path = first, rest
	}
	if reference.Domain == legacyDomain {
		reference.Domain = defaultDomain
	}
	if reference.Domain == defaultDomain && !strings.Contains(reference.Path, "/") {
		reference.Path = officialPath + reference.Path
	}
	return reference, true
}

// Name is domain and path.
func (r Reference) Name() string { return r.Domain + "/" + r.Path }

func (r Reference) String() string { return r.Name() + r.Tag + r.Digest }

// isDomain distinguishes a registry from the first part of a path.
func isDomain(part string) bool {
	return strings.ContainsAny(part, ".:") || part == "localhost" || strings.ToLower(part) != part
}
