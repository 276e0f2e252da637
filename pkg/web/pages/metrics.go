package pages

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics of the program. No label has text of users.
type Metrics struct {
	requests, calls *prometheus.CounterVec
	streams         prometheus.Gauge
	valid           prometheus.Gauge
}

// NewMetrics registers the metrics.
func NewMetrics(with prometheus.Registerer) *Metrics {
	made := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trellis_web_requests_total", Help: "Pages that were sent, by page and status.",
		}, []string{"page", "code"}),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trellis_web_calls_total", Help: "Calls to API servers and query endpoints, by server and outcome.",
		}, []string{"server", "outcome"}),
		streams: prometheus.NewGauge(prometheus.GaugeOpts{Name: "trellis_web_streams", Help: "Open streams of browsers."}),
		valid: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trellis_web_config_valid", Help: "1 if the configuration file is valid and applied, else 0.",
		}),
	}
	with.MustRegister(made.requests, made.calls, made.streams, made.valid)
	made.valid.Set(1)
	return made
}

func (m *Metrics) answered(page string, code int) {
	m.requests.WithLabelValues(page, strconv.Itoa(code)).Inc()
}

func (m *Metrics) called(server, outcome string) { m.calls.WithLabelValues(server, outcome).Inc() }

// Configured reports whether the configuration file is valid.
func (m *Metrics) Configured(err error) {
	m.valid.Set(1)
	if err != nil {
		m.valid.Set(0)
	}
}
