package registry

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/fetch"
)

const referenceLimit = 1024

// Reference is an image or a chart in a registry.
type Reference struct {
	Repository Repository
	// Tag and Digest select it; the digest takes precedence.
	Tag, Digest string
}

// Repository is a name in a registry.
type Repository struct {
	// Host is the registry's host, with its port if it has one; Name has no host.
	Host, Name string
}

func (r Repository) String() string { return r.Host + "/" + r.Name }

func (r Repository) root() *url.URL { return &url.URL{Scheme: "https", Host: r.Host, Path: "/"} }

// Word is the tag or digest to request.
func (r Reference) Word() string { return cmp.Or(r.Digest, r.Tag) }

// digestPattern excludes other algorithms than SHA-256, which are allowed but not used.
var digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// The grammar of the distribution specification; go-containerregistry allows more.
var (
	hostPattern = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$`)
	tagPattern  = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)
	namePattern = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)
)

// IsDigest reports whether a text is a supported digest.
func IsDigest(text string) bool { return digestPattern.MatchString(text) }

// Parse reads [host/]name:tag, [host/]name@sha256:…, or both. There is no default tag: a change of its image would go
// unnoticed. Without host it is an image of Docker Hub.
func Parse(text string) (Reference, error) {
	if len(text) > referenceLimit || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return Reference{}, refusedReference(text, "it is too long, or has characters that are not allowed in references")
	}
	parsed, err := name.ParseReference(text, name.WeakValidation)
	if err != nil {
		return Reference{}, refusedReference(text, "it is not a reference of an image")
	}
	bare := WithoutRevision(text)
	read := Reference{Repository: Repository{Host: parsed.Context().RegistryStr(), Name: parsed.Context().RepositoryStr()}}
	if digest, ok := parsed.(name.Digest); ok {
		read.Digest = digest.DigestStr()
	}
	if named, _, _ := strings.Cut(text, "@"); named != bare {
		read.Tag = named[len(bare)+1:]
	}
	switch {
	case read.Word() == "":
		return Reference{}, refusedReference(text, "it has neither tag nor digest")
	case read.Digest != "" && !IsDigest(read.Digest):
		return Reference{}, refusedReference(text, "its digest is not a SHA-256")
	case read.Tag != "" && !tagPattern.MatchString(read.Tag):
		return Reference{}, refusedReference(text, "its tag is not valid")
	case !hostPattern.MatchString(read.Repository.Host):
		return Reference{}, refusedReference(text, "its host is not a name or address")
	case !namePattern.MatchString(read.Repository.Name):
		return Reference{}, refusedReference(text, "its name has parts other than lower-case letters, digits and single separators")
	}
	return read, nil
}

// WithoutRevision is a reference without tag and digest.
func WithoutRevision(text string) string {
	name, _, _ := strings.Cut(text, "@")
	if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, '/') {
		name = name[:colon]
	}
	return name
}

func refusedReference(reference, rule string) error {
	const shown = 120
	if at := strings.LastIndexByte(reference, '@'); at >= 0 && !strings.HasPrefix(reference[at:], "@sha") {
		reference = "…" + reference[at:] // the text before it may be a password
	}
	return &fetch.RefusedError{Subject: fmt.Sprintf("image %q", text.Cut(reference, shown)), Rule: rule}
}
