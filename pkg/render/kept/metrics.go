package kept

import "github.com/prometheus/client_golang/prometheus"

// Metrics count the answers from cached results.
type Metrics struct {
	asked   *prometheus.CounterVec
	changed prometheus.Counter
}

// NewMetrics creates metrics and registers them.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	made := &Metrics{
		asked: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trellis_render_requests_total", Help: "Requests for renderings, by origin: kept (cached) or rendered.",
		}, []string{"from"}),
		changed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trellis_render_nondeterministic_total", Help: "Renderings that differed from an earlier one of equal inputs.",
		}),
	}
	registerer.MustRegister(made.asked, made.changed)
	for _, from := range []string{"kept", "rendered"} { // they begin at 0
		made.asked.WithLabelValues(from)
	}
	return made
}

func (m *Metrics) rendered(came *outcome) {
	m.asked.WithLabelValues("rendered").Inc()
	if len(came.changed) > 0 {
		m.changed.Inc()
	}
}
