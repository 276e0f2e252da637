package helmrepo

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
)

const indexLimit = 50 << 20

// rememberedFor is how long an unused index stays in memory.
const rememberedFor = time.Hour

// indexKey identifies an index by URL and user: users may see different indexes.
type indexKey struct {
	url  string
	user [sha256.Size]byte
}

// index caches one repository's index.yaml.
type index struct {
	at          *url.URL // of the repository
	credentials fetch.Credentials

	// asking allows one request at a time; others use its result.
	asking chan struct{}

	mu                 sync.Mutex
	wanted             map[string]bool      // requested charts
	charts             map[string][]version // those of them that the last read index has
	read               map[string]bool      // charts that the last read searched for
	names              []string             // the first charts that it passed, for messages
	etag, lastModified string
}

func (s *Source) index(at *url.URL, credentials fetch.Credentials) *index {
	key := indexKey{url: at.String(), user: credentials.Identity()}
	return s.indexes.Renew(key, rememberedFor, func() *index {
		return &index{
			at: at, credentials: credentials, asking: make(chan struct{}, 1),
			wanted: map[string]bool{}, charts: map[string][]version{}, read: map[string]bool{},
		}
	})
}

func (i *index) chart(ctx context.Context, network *outbound.Network, chart string, fresh bool) ([]version, error) {
	i.want(chart)
	select {
	case i.asking <- struct{}{}:
		defer func() { <-i.asking }()
	case <-ctx.Done():
		return nil, &fetch.UnavailableError{Subject: outbound.Shown(i.at), Err: context.Cause(ctx)}
	}
	if versions, ok := i.known(chart); ok && !fresh {
		return versions, nil
	}
	if err := i.refresh(ctx, network, chart); err != nil {
		return nil, err
	}
	versions, _ := i.known(chart)
	return versions, nil
}

func (i *index) want(chart string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.wanted[chart] = true
}

func (i *index) isWanted(chart string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.wanted[chart]
}

func (i *index) known(chart string) ([]version, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.charts[chart], i.read[chart]
}

// refresh asks the server, with a condition if the chart was in the last index read.
func (i *index) refresh(ctx context.Context, network *outbound.Network, chart string) error {
	at := *i.at
	at.Path += "/index.yaml"
	answer, err := network.Do(ctx, outbound.Request{
		Method: http.MethodGet, URL: &at, Header: i.condition(chart), Origin: i.at, Credentials: i.credentials, Limit: indexLimit,
	})
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.Status == http.StatusNotModified {
		return nil
	}
	if err := answer.Problem(fmt.Sprintf("Helm repository %q", outbound.Shown(answer.URL))); err != nil {
		return err
	}
	i.mu.Lock()
	searched := maps.Clone(i.wanted) // charts asked for from now on may have passed by already
	i.mu.Unlock()
	var names []string
	charts, err := readIndex(answer.Body, outbound.Shown(&at), func(chart string) bool {
		if len(names) < namesLimit && chartName.MatchString(chart) {
			names = append(names, strings.Clone(chart))
		}
		return i.isWanted(chart)
	})
	if err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for name := range charts {
		searched[name] = true
	}
	i.charts, i.read, i.names = charts, searched, names
	i.etag, i.lastModified = answer.Header.Get("ETag"), answer.Header.Get("Last-Modified")
	return nil
}

// named are charts of the index that was read last.
func (i *index) named() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.names
}

func (i *index) condition(chart string) http.Header {
	i.mu.Lock()
	defer i.mu.Unlock()
	header := http.Header{}
	if !i.read[chart] {
		return header
	}
	if i.etag != "" {
		header.Set("If-None-Match", i.etag)
	}
	if i.lastModified != "" {
		header.Set("If-Modified-Since", i.lastModified)
	}
	return header
}
