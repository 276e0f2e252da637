package helmrepo

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/trellis-addons/trellis/pkg/base/lru"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
)

const indexLimit = 50 << 20

// Limits of cached parts of indexes: results for requested versions, for an hour after the last request, and all
// versions of few charts of few bytes, for versions that are requested next.
const (
	rememberedFor = time.Hour
	indexesKept   = 4096
	chartsKept    = 128
	chartKept     = 512 << 10
)

// indexKey identifies an index by URL, user and owner: users may see different indexes, and one owner's requests must not cause
// refusals for others, since the limits of an index are for all requested charts.
type indexKey struct {
	url   string
	user  [sha256.Size]byte
	owner string
}

// chartKey is a chart in one reading of an index.
type chartKey struct {
	index   *index
	reading int
	chart   string
}

// result is an index's answer for a location.
type result struct {
	version version
	err     error
}

// index caches the results of one repository's index.yaml for the requested locations.
type index struct {
	at          *url.URL // of the repository
	credentials fetch.Credentials
	charts      *lru.Cache[chartKey, []version]

	// asking allows one request at a time; others use its result.
	asking chan struct{}

	mu                 sync.Mutex
	wanted             map[Location]time.Time // when it was last requested
	known              map[Location]result    // from the last reading
	reading            int
	etag, lastModified string
}

func (s *Source) index(at *url.URL, reference fetch.Reference) *index {
	key := indexKey{url: at.String(), user: reference.Credentials.Identity(), owner: reference.Owner}
	return s.indexes.Renew(key, rememberedFor, func() *index {
		return &index{
			at: at, credentials: reference.Credentials, charts: s.charts, asking: make(chan struct{}, 1),
			wanted: map[Location]time.Time{}, known: map[Location]result{},
		}
	})
}

func (i *index) find(ctx context.Context, network *outbound.Network, location Location, fresh bool) (version, error) {
	i.want(location)
	select {
	case i.asking <- struct{}{}:
		defer func() { <-i.asking }()
	case <-ctx.Done():
		return version{}, &fetch.UnavailableError{Subject: outbound.Shown(i.at), Err: context.Cause(ctx)}
	}
	found, ok := i.recall(location)
	if !ok || fresh {
		var err error
		if found, err = i.refresh(ctx, network, location, found, ok); err != nil {
			return version{}, err
		}
	}
	return found.version, found.err
}

func (i *index) want(location Location) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.wanted[location] = time.Now()
}

// wantedCharts are the requested charts, and their locations by version. Locations that were not requested for a
// while are removed.
func (i *index) wantedCharts() map[string]map[string]Location {
	i.mu.Lock()
	defer i.mu.Unlock()
	charts := map[string]map[string]Location{}
	for location, asked := range i.wanted {
		if time.Since(asked) > rememberedFor {
			delete(i.wanted, location)
			continue
		}
		if charts[location.Chart] == nil {
			charts[location.Chart] = map[string]Location{}
		}
		charts[location.Chart][string(location.Version)] = location
	}
	return charts
}

// recall returns the result of the last reading for a location.
func (i *index) recall(location Location) (result, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if found, ok := i.known[location]; ok {
		return found, true
	}
	versions, ok := i.charts.Get(chartKey{i, i.reading, location.Chart})
	if ok {
		i.known[location] = i.pick(versions, nil, location)
	}
	return i.known[location], ok
}

func (i *index) pick(versions []version, names []string, location Location) result {
	found, err := pick(versions, names, location, outbound.Shown(i.at))
	return result{found, err}
}

// refresh asks the server, with a condition if the last reading has a result for the location.
func (i *index) refresh(ctx context.Context, network *outbound.Network, location Location, before result, known bool) (result, error) {
	at := *i.at
	at.Path += "/index.yaml"
	answer, err := network.Do(ctx, outbound.Request{
		Method: http.MethodGet, URL: &at, Header: i.condition(known), Origin: i.at, Credentials: i.credentials, Limit: indexLimit,
	})
	if err != nil {
		return result{}, err
	}
	defer answer.Body.Close()
	if answer.Status == http.StatusNotModified && known {
		return before, nil
	}
	if err := answer.Problem(fmt.Sprintf("Helm repository %q", outbound.Shown(answer.URL))); err != nil {
		return result{}, err
	}
	wanted := i.wantedCharts()
	var names []string
	charts, err := readIndex(answer.Body, outbound.Shown(&at), func(chart string) bool {
		if len(names) < namesLimit && chartName.MatchString(chart) {
			names = append(names, strings.Clone(chart))
		}
		return wanted[chart] != nil
	})
	if err != nil {
		return result{}, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.reading++
	i.etag, i.lastModified = answer.Header.Get("ETag"), answer.Header.Get("Last-Modified")
	i.known = map[Location]result{}
	for chart, versions := range charts {
		if weight(versions) <= chartKept {
			i.charts.Put(chartKey{i, i.reading, chart}, versions, rememberedFor)
			continue
		}
		for _, one := range versions {
			if asked, ok := wanted[chart][one.Version]; ok {
				same := []version{one}
				if _, twice := i.known[asked]; twice {
					same = append(same, one)
				}
				i.known[asked] = i.pick(same, nil, asked)
			}
		}
	}
	i.known[location] = i.pick(charts[location.Chart], names, location)
	return i.known[location], nil
}

// weight is the approximate memory that versions need, in bytes.
func weight(versions []version) (bytes int) {
	for _, one := range versions {
		bytes += len(one.Version) + len(one.Digest) + len(one.URL) + 3*16
	}
	return bytes
}

func (i *index) condition(known bool) http.Header {
	i.mu.Lock()
	defer i.mu.Unlock()
	header := http.Header{}
	if known && i.etag != "" {
		header.Set("If-None-Match", i.etag)
	}
	if known && i.lastModified != "" {
		header.Set("If-Modified-Since", i.lastModified)
	}
	return header
}
