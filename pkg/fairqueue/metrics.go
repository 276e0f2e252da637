package fairqueue

import "github.com/prometheus/client_golang/prometheus"

// Metrics of the lanes of a queue.
type Metrics struct {
	ready, running *prometheus.GaugeVec
	slow           prometheus.Gauge
	overdue        *prometheus.CounterVec
}

// NewMetrics makes the metrics and registers them. One queue of a process has them.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	made := &Metrics{
		ready: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "trellis_queue_ready", Help: "Installations that wait for a worker.",
		}, []string{"lane"}),
		running: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "trellis_queue_running", Help: "Workers that are busy.",
		}, []string{"lane"}),
		slow: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trellis_queue_slow_clusters", Help: "Clusters whose passes were slow lately.",
		}),
		overdue: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trellis_queue_overdue_total", Help: "Passes that were ended since they took too long.",
		}, []string{"limit"}),
	}
	registerer.MustRegister(made.ready, made.running, made.slow, made.overdue)
	return made
}

func (m *Metrics) show(ready, running map[lane]int, slow int) {
	for _, which := range []lane{laneNormal, laneSlow} {
		m.ready.WithLabelValues(string(which)).Set(float64(ready[which]))
		m.running.WithLabelValues(string(which)).Set(float64(running[which]))
	}
	m.slow.Set(float64(slow))
}

// wasOverdue counts a pass that was ended: at its deadline, or without a place in the slow lane.
func (m *Metrics) wasOverdue(atDeadline bool) {
	limit := "lane"
	if atDeadline {
		limit = "deadline"
	}
	m.overdue.WithLabelValues(limit).Inc()
}
