package query

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics of the endpoint. No label has a caller's text. A nil one counts nothing.
type Metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	reviews  *prometheus.CounterVec
	answers  *prometheus.CounterVec
	bytes    prometheus.Gauge
	streams  prometheus.Gauge
}

// NewMetrics registers the metrics. It panics if they are registered already.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trellis_query_requests_total", Help: "Requests to the query endpoint by route and HTTP status.",
		}, []string{"route", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "trellis_query_request_seconds", Help: "Time to answer a request, in seconds, by route.",
			Buckets: []float64{.0001, .0005, .001, .005, .01, .05, .1, .5, 1, 5},
		}, []string{"route"}),
		reviews: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trellis_query_reviews_total", Help: "Calls to the API server by kind (token, access) and result (accepted, refused, error).",
		}, []string{"kind", "result"}),
		answers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trellis_query_answers_total", Help: "Listings by origin: kept (cached) or decided (computed).",
		}, []string{"from"}),
		bytes: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trellis_query_answer_bytes", Help: "Size of the cached listings, in bytes.",
		}),
		streams: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trellis_query_streams", Help: "Streams of changed installations that are open.",
		}),
	}
	registry.MustRegister(m.requests, m.seconds, m.reviews, m.answers, m.bytes, m.streams)
	return m
}

func (m *Metrics) requested(route string, status int, took time.Duration) {
	if m != nil {
		m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
		m.seconds.WithLabelValues(route).Observe(took.Seconds())
	}
}

func (m *Metrics) reviewed(kind, result string) {
	if m != nil {
		m.reviews.WithLabelValues(kind, result).Inc()
	}
}

func (m *Metrics) answered(from string) {
	if m != nil {
		m.answers.WithLabelValues(from).Inc()
	}
}

func (m *Metrics) resized(bytes int) {
	if m != nil {
		m.bytes.Set(float64(bytes))
	}
}

func (m *Metrics) streaming(by int) {
	if m != nil {
		m.streams.Add(float64(by))
	}
}
