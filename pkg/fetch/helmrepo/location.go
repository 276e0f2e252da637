package helmrepo

import (
	"strings"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
	"github.com/trellis-addons/trellis/pkg/fetch/registry"
)

// Location is one chart version in a repository.
type Location struct {
	// URL of the repository: https:// with an index.yaml, or oci://.
	URL, Chart string
	Version    fetch.Selector
}

// Name implements fetch.Kind.
func (*Source) Name() string { return "helm" }

// Locate implements fetch.Kind.
func (*Source) Locate(kind v1.SourceKind) (Location, bool) {
	source, ok := kind.(*v1.HelmSource)
	if !ok {
		return Location{}, false
	}
	return Location{URL: source.URL, Chart: source.Chart, Version: fetch.Selector(source.Version)}, true
}

// SecretKeys implements fetch.Kind.
func (*Source) SecretKeys() []fetch.SecretKey { return registry.SecretKeys() }

// Host implements fetch.Location.
func (l Location) Host() string { return outbound.HostOf(l.URL) }

// Mirrored implements fetch.Location. A registry's mirror is that of its images.
func (l Location) Mirrored(mirrors fetch.Mirrors) (fetch.Location, bool) {
	var changed bool
	if place, isOCI := strings.CutPrefix(l.URL, ociScheme); isOCI {
		place, changed = mirrors.Image(place)
		l.URL = ociScheme + place
	} else {
		l.URL, changed = mirrors.URL(l.URL)
	}
	return l, changed
}

// IsFixed implements fetch.Location: the archive of a version can be replaced.
func (Location) IsFixed() bool { return false }
