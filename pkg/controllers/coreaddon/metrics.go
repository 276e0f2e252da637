package coreaddon

import "github.com/prometheus/client_golang/prometheus"

// coreAddons counts over all clusters; each core add-on is in one state.
var coreAddons = prometheus.NewDesc("trellis_core_addons",
	"Core add-ons of all clusters by state: ready, failing, missing (no catalogue has it), unfit (no version fits; also failing), total.",
	[]string{"state"}, nil)

// Describe implements prometheus.Collector.
func (r *Reconciler) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- coreAddons }

// Collect implements prometheus.Collector.
func (r *Reconciler) Collect(metrics chan<- prometheus.Metric) {
	r.reports.mutex.Lock()
	states := map[string]int{"total": 0, "ready": 0, "failing": 0, "missing": 0, "unfit": 0}
	for namespace, counts := range r.reports.counts {
		states["total"] += int(counts.Total)
		states["ready"] += int(counts.Ready)
		states["failing"] += int(counts.Failing)
		states["missing"] += int(counts.Missing)
		states["unfit"] += r.reports.unfit[namespace]
	}
	r.reports.mutex.Unlock()
	for state, count := range states {
		metrics <- prometheus.MustNewConstMetric(coreAddons, prometheus.GaugeValue, float64(count), state)
	}
}
