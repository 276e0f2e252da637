package child

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/trellis-addons/trellis/pkg/base/tracing"
	"github.com/trellis-addons/trellis/pkg/render"
)

// Metrics count a pool's work.
type Metrics struct {
	seconds  *prometheus.HistogramVec
	ends     *prometheus.CounterVec
	children prometheus.Gauge
	starts   prometheus.Counter
}

// Results of renderings in metrics; further ones are the limits.
const (
	resultRendered = "rendered"
	resultRefused  = "refused"
	resultDied     = "died"
	resultLost     = "lost"
	resultProtocol = "protocol"
)

// NewMetrics creates metrics and registers them.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	made := &Metrics{
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "trellis_render_seconds", Help: "Time of a rendering in its process, by method.",
			Buckets: prometheus.ExponentialBuckets(0.005, 2, 14),
		}, []string{"method"}),
		ends: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trellis_render_results_total",
			Help: "Renderings by method and result: rendered, refused, died, lost, protocol, or the limit for which the process was killed.",
		}, []string{"method", "result"}),
		children: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trellis_render_children", Help: "Live rendering processes, at work or waiting.",
		}),
		starts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trellis_render_children_started_total", Help: "Rendering processes that were started.",
		}),
	}
	registerer.MustRegister(made.seconds, made.ends, made.children, made.starts)
	return made
}

// begin starts all series of a method at 0: for an alert, a series that appears with its first count has not risen.
func (m *Metrics) begin(method string) {
	results := []string{
		resultRendered, resultRefused, resultDied, resultLost, resultProtocol, limitMemory, limitCPU, limitTime,
	}
	for _, result := range results {
		m.ends.WithLabelValues(method, result)
	}
	m.seconds.WithLabelValues(method)
}

func (m *Metrics) started() {
	m.starts.Inc()
	m.children.Inc()
}

func (m *Metrics) rendered(method string, err error, took time.Duration) {
	m.seconds.WithLabelValues(method).Observe(took.Seconds())
	m.ends.WithLabelValues(method, resultOf(err)).Inc()
}

// endSpan ends the span of a rendering, with the time that it waited for a child.
func endSpan(span *tracing.Span, err error) {
	if span == nil {
		return
	}
	result := tracing.OK
	if err != nil {
		result = resultOf(err)
		span.Fail()
	}
	span.Set(tracing.Result, result)
	span.End()
}

func resultOf(err error) string {
	var exhausted *render.ExhaustedError
	var died *render.DiedError
	var lost *render.LostError
	var protocol *render.ProtocolError
	switch {
	case err == nil:
		return resultRendered
	case errors.As(err, &exhausted):
		return exhausted.Limit
	case errors.As(err, &died):
		return resultDied
	case errors.As(err, &lost):
		return resultLost
	case errors.As(err, &protocol):
		return resultProtocol
	}
	return resultRefused
}
