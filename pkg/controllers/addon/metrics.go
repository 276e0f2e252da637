package addon

import "github.com/prometheus/client_golang/prometheus"

// Metrics count what the controller does.
type Metrics struct {
	decisions, writes prometheus.Counter
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	made := &Metrics{
		decisions: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trellis_available_decisions_total",
			Help: "Decisions on what clusters of one KKP and Kubernetes version are offered, whatever their number.",
		}),
		writes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trellis_available_writes_total",
			Help: "Available catalogues that were written because they differed from what was decided.",
		}),
	}
	registerer.MustRegister(made.decisions, made.writes)
	return made
}
