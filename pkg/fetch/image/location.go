package image

import (
	"strings"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/registry"
)

// Location is a folder in a container image.
type Location struct {
	Image Name
	// Path is the folder, slash-separated, relative; "" is the root.
	Path string
}

// Name of an image is host/name:tag, host/name@sha256:…, or both.
type Name string

// Place is the image without tag and digest: they select a revision.
func (n Name) Place() string { return registry.WithoutRevision(string(n)) }

// dockerHub is where images live whose reference names no host.
const dockerHub = "index.docker.io"

// Name implements fetch.Kind.
func (*Source) Name() string { return "image" }

// Locate implements fetch.Kind.
func (*Source) Locate(kind v1.SourceKind) (Location, bool) {
	source, ok := kind.(*v1.ImageSource)
	if !ok {
		return Location{}, false
	}
	return Location{Image: Name(source.Image), Path: source.Path}, true
}

// SecretKeys implements fetch.Kind.
func (*Source) SecretKeys() []fetch.SecretKey { return registry.SecretKeys() }

// Host implements fetch.Location.
func (l Location) Host() string {
	first, _, more := strings.Cut(string(l.Image), "/")
	if !more || !strings.ContainsAny(first, ".:") && first != "localhost" {
		return dockerHub
	}
	return first
}

// Mirrored implements fetch.Location.
func (l Location) Mirrored(mirrors fetch.Mirrors) (fetch.Location, bool) {
	place, changed := mirrors.Image(string(l.Image))
	l.Image = Name(place)
	return l, changed
}

// IsFixed implements fetch.Location. To look at a digest costs no request, so they are looked at
// like tags.
func (Location) IsFixed() bool { return false }
