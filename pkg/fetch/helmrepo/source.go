package helmrepo

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/lru"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
	"github.com/trellis-addons/trellis/pkg/fetch/registry"
)

// Source is the fetch.Kind of charts in Helm repositories.
type Source struct {
	network *outbound.Network
	indexes *lru.Cache[indexKey, *index]
	charts  *lru.Cache[chartKey, []version]
}

// New creates a Source whose requests go through the network.
func New(network *outbound.Network) *Source {
	return &Source{
		network: network,
		indexes: lru.New[indexKey, *index](indexesKept, time.Now), charts: lru.New[chartKey, []version](chartsKept, time.Now),
	}
}

// Resolve checks that the repository has the chart version, and returns its digest.
func (s *Source) Resolve(ctx context.Context, reference fetch.Reference) (fetch.Revision, error) {
	location, ok := reference.Location.(Location)
	if !ok {
		return fetch.Revision{}, errNoChart
	}
	ctx, cancel := s.network.Operation(ctx)
	defer cancel()
	if location.isOCI() {
		return s.resolveOCI(ctx, location, reference.Credentials)
	}
	found, err := s.find(ctx, location, reference, true)
	if err != nil {
		return fetch.Revision{}, err
	}
	return fetch.Revision{Name: found.Version, Digest: found.Digest}, nil
}

var errNoChart = errors.New("not a Helm reference")

// find returns the chart version in the index. Without fresh, the known result of the index is enough.
func (s *Source) find(ctx context.Context, location Location, reference fetch.Reference, fresh bool) (version, error) {
	at, err := s.repository(location)
	if err != nil {
		return version{}, err
	}
	return s.index(at, reference).find(ctx, s.network, location, fresh)
}

// chartName follows Helm's naming rules. Paths are only built from matching names.
var chartName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,249}$`)

const versionLimit = 128

// repository checks a reference and returns its repository's URL, without a trailing slash.
func (s *Source) repository(location Location) (*url.URL, error) {
	if err := checkChart(location); err != nil {
		return nil, err
	}
	at, err := s.network.ParseURL(location.URL)
	if err != nil {
		return nil, err
	}
	at.Path, at.RawPath = strings.TrimRight(at.Path, "/"), ""
	return at, nil
}

func checkChart(location Location) error {
	if !chartName.MatchString(location.Chart) {
		return &fetch.RefusedError{Subject: fmt.Sprintf("chart %q", cut(location.Chart)), Rule: "it is not a name of a chart"}
	}
	if location.Version == "" || len(location.Version) > versionLimit {
		return &fetch.RefusedError{Subject: fmt.Sprintf("chart %q", location.Chart), Rule: "its version is empty or too long"}
	}
	return nil
}

func cut(whole string) string { return text.Cut(whole, 80) }

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
