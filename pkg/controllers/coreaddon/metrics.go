package coreaddon

import (
	"github.com/prometheus/client_golang/prometheus"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/waves"
)

// coreAddons counts the core add-ons of all clusters; each is in one state.
var coreAddons = prometheus.NewDesc("trellis_core_addons",
	"Core add-ons of all clusters by state: ready, failing, missing (no catalogue has it), unfit (no version fits; also failing), total.",
	[]string{"state"}, nil)

// coreList has the value 1 for one state.
var coreList = prometheus.NewDesc("trellis_core_list",
	"1 for the state of the custom core list: none, good, refused (the last valid one stays in use), gone (its add-ons stay).",
	[]string{"state"}, nil)

// States of the custom core list.
const (
	listNone    = "none"
	listGood    = "good"
	listRefused = "refused"
	listGone    = "gone"
)

// SetFigures are the metrics of the Core set: counts of its clusters by state, the reason of its condition Ready
// (empty without such a set), and the number of installations that it created, changed or removed.
func (r *Reconciler) SetFigures() (clusters v1.ClusterCounts, reason string, moves int64) {
	r.staging.mutex.Lock()
	defer r.staging.mutex.Unlock()
	if run := r.staging.run; run != nil {
		clusters, reason = run.tally.Counts(), waves.ReasonIn(&run.shown)
	}
	return clusters, reason, r.moves.Load()
}

// Describe implements prometheus.Collector.
func (r *Reconciler) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- coreAddons
	descriptions <- coreList
}

// Collect implements prometheus.Collector.
func (r *Reconciler) Collect(metrics chan<- prometheus.Metric) {
	r.reports.mutex.Lock()
	states := map[string]int{"total": 0, "ready": 0, "failing": 0, "missing": 0, "unfit": 0}
	orphans := 0
	for _, found := range r.reports.figures {
		states["total"] += int(found.Total)
		states["ready"] += int(found.Ready)
		states["failing"] += int(found.Failing)
		states["missing"] += int(found.Missing)
		states["unfit"] += found.unfit
		orphans += found.orphans
	}
	r.reports.mutex.Unlock()
	current := r.lists.stateName()
	if current == listNone && orphans > 0 { // the list was deleted before this process started
		current = listGone
	}
	for _, state := range []string{listNone, listGood, listRefused, listGone} {
		value := 0.0
		if state == current {
			value = 1
		}
		metrics <- prometheus.MustNewConstMetric(coreList, prometheus.GaugeValue, value, state)
	}
	for state, count := range states {
		metrics <- prometheus.MustNewConstMetric(coreAddons, prometheus.GaugeValue, float64(count), state)
	}
}
