package fairqueue

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics of the lanes of a queue.
type Metrics struct {
	ready, running *prometheus.GaugeVec
	slow           prometheus.Gauge
	overdue        *prometheus.CounterVec
	waits          *prometheus.HistogramVec
}

// Limits that end a reconciliation, as labels.
const (
	limitLane     = "lane"
	limitDeadline = "deadline"
)

// NewMetrics makes the metrics and registers them. One queue of a process has them.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	made := &Metrics{
		ready: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "trellis_queue_ready", Help: "Installations that wait for a worker.",
		}, []string{"lane"}),
		running: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "trellis_queue_running", Help: "Busy workers.",
		}, []string{"lane"}),
		slow: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trellis_queue_slow_clusters", Help: "Clusters with slow recent reconciliations.",
		}),
		overdue: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trellis_queue_overdue_total", Help: "Reconciliations that were stopped because they took too long.",
		}, []string{"limit"}),
		waits: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "trellis_queue_wait_seconds", Help: "Time that installations wait for a worker.",
			Buckets: []float64{0.01, 0.1, 1, 5, 15, 60, 300, 1800},
		}, []string{"lane"}),
	}
	registerer.MustRegister(made.ready, made.running, made.slow, made.overdue, made.waits)
	// They begin at 0: for an alert, a series that appears with its first count has not risen.
	for _, limit := range []string{limitLane, limitDeadline} {
		made.overdue.WithLabelValues(limit)
	}
	for _, which := range []lane{laneNormal, laneSlow} {
		made.waits.WithLabelValues(string(which))
	}
	return made
}

func (m *Metrics) show(ready, running map[lane]int, slow int) {
	for _, which := range []lane{laneNormal, laneSlow} {
		m.ready.WithLabelValues(string(which)).Set(float64(ready[which]))
		m.running.WithLabelValues(string(which)).Set(float64(running[which]))
	}
	m.slow.Set(float64(slow))
}

// wasOverdue counts a reconciliation that was ended at a limit: its deadline, or the places of the slow lane.
func (m *Metrics) wasOverdue(limit string) {
	m.overdue.WithLabelValues(limit).Inc()
}

// waited records the wait of an object that got a worker in a lane.
func (m *Metrics) waited(which lane, wait time.Duration) {
	m.waits.WithLabelValues(string(which)).Observe(wait.Seconds())
}
