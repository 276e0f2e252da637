package clusterupgrade

import (
	"github.com/prometheus/client_golang/prometheus"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// holds counts the clusters in each stage.
var holds = prometheus.NewDesc("trellis_upgrade_holds",
	"Clusters of Cluster API by the stage of their upgrade, as in condition UpgradeHeld: BeforeControlPlane and BeforeWorkers wait.",
	[]string{"stage"}, nil)

// stages are the values of the label.
var stages = []string{
	v1.ReasonBeforeControlPlane, v1.ReasonBeforeWorkers, v1.ReasonNotUpgrading, v1.ReasonControlPlane, v1.ReasonReleased, v1.ReasonTimedOut,
	v1.ReasonOverridden, v1.ReasonNotHonoured, v1.ReasonNotHoldable,
}

// Describe implements prometheus.Collector.
func (r *Reconciler) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- holds }

// Collect implements prometheus.Collector.
func (r *Reconciler) Collect(metrics chan<- prometheus.Metric) {
	counts := map[string]int{}
	r.reports.mutex.Lock()
	for _, stage := range r.reports.stages {
		counts[stage]++
	}
	r.reports.mutex.Unlock()
	for _, stage := range stages {
		metrics <- prometheus.MustNewConstMetric(holds, prometheus.GaugeValue, float64(counts[stage]), stage)
	}
}
