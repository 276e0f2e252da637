package store

import (
	"context"
	"errors"
	"regexp"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/fetch"
)

// hostsCounted is the number of hosts with their own series; later ones share one.
const hostsCounted = 100

// Metrics of a store, by host of the content. Catalogues choose hosts, so their number is bounded,
// and invalid ones are not repeated.
type Metrics struct {
	resolutions, fetches, bytes, hits, failures *prometheus.CounterVec
	size                                        prometheus.Gauge
	hosts                                       *text.Words
}

// NewMetrics registers the metrics. It panics if they are registered already.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &Metrics{
		resolutions: counter("trellis_fetch_resolutions_total", "Requests that resolve a reference of a source to a revision, by host.", "host"),
		fetches:     counter("trellis_fetch_fetches_total", "Artifacts requested from a source, by host.", "host"),
		bytes:       counter("trellis_fetch_bytes_total", "Size of fetched artifacts, unpacked, by host.", "host"),
		hits:        counter("trellis_fetch_hits_total", "Content served from the store without a request, by host.", "host"),
		failures: counter("trellis_fetch_failures_total",
			"Requests and fetches that failed, by host and reason (refused, notFound, unauthorized, unavailable, other).", "host", "reason"),
		size: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trellis_fetch_store_bytes", Help: "Disk space of the stored content, in bytes.",
		}),
		hosts: text.NewWords(hostsCounted, hostPattern),
	}
	registry.MustRegister(m.resolutions, m.fetches, m.bytes, m.hits, m.failures, m.size)
	return m
}

// hostPattern is a host with or without a port. An unchecked reference may have anything here.
var hostPattern = regexp.MustCompile(`^[a-zA-Z0-9.:\[\]-]{1,253}$`)

func (m *Metrics) resolved(host string) {
	m.resolutions.WithLabelValues(m.hosts.Label(host)).Inc()
}

func (m *Metrics) fetching(host string) {
	m.fetches.WithLabelValues(m.hosts.Label(host)).Inc()
}

func (m *Metrics) fetched(host string, size int64) {
	m.bytes.WithLabelValues(m.hosts.Label(host)).Add(float64(size))
}

func (m *Metrics) hit(host string) {
	m.hits.WithLabelValues(m.hosts.Label(host)).Inc()
}

func (m *Metrics) resized(size int64) {
	m.size.Set(float64(size))
}

func (m *Metrics) failed(host string, err error) {
	m.failures.WithLabelValues(m.hosts.Label(host), reason(err)).Inc()
}

// reason is a label for an error, whose text goes to the installation's status.
func reason(err error) string {
	var (
		refused      *fetch.RefusedError
		missing      *fetch.NotFoundError
		unauthorized *fetch.UnauthorizedError
		unavailable  *fetch.UnavailableError
	)
	switch {
	case errors.As(err, &refused):
		return "refused"
	case errors.As(err, &missing):
		return "notFound"
	case errors.As(err, &unauthorized):
		return "unauthorized"
	case errors.As(err, &unavailable), errors.Is(err, context.DeadlineExceeded):
		return "unavailable"
	}
	return "other"
}
