package tracing

import "github.com/prometheus/client_golang/prometheus"

// Metrics count spans by their result.
type Metrics struct{ sent, refused, failed, dropped prometheus.Counter }

// NewMetrics makes metrics and registers them.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	spans := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "trellis_tracing_spans_total",
		Help: "Spans by result: sent to the collector, refused by it, failed to be sent, or dropped because too many waited.",
	}, []string{"result"})
	registerer.MustRegister(spans)
	return &Metrics{
		sent: spans.WithLabelValues("sent"), refused: spans.WithLabelValues("refused"),
		failed: spans.WithLabelValues("failed"), dropped: spans.WithLabelValues("dropped"),
	}
}
