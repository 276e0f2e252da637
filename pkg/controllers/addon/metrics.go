package addon

import "github.com/prometheus/client_golang/prometheus"

// Metrics count decisions and writes of the controller.
type Metrics struct {
	decisions, writes prometheus.Counter
}

// NewMetrics returns the metrics and registers them.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	made := &Metrics{
		decisions: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trellis_available_decisions_total",
			Help: "Computed lists of the versions that fit all clusters of one KKP and Kubernetes version.",
		}),
		writes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trellis_available_writes_total",
			Help: "Available catalogues that were written because they differed from the computed list.",
		}),
	}
	registerer.MustRegister(made.decisions, made.writes)
	return made
}
