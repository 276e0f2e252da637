package addonset

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/waves"
)

var (
	setClusters = prometheus.NewDesc("trellis_set_clusters",
		"Clusters of AddonSets by state: current, moving, behind, failed, sick, away, blocked, new, selected (all).",
		[]string{"state"}, nil)
	setMoves = prometheus.NewDesc("trellis_set_moves_total",
		"Installations that AddonSets created, changed or removed.", nil, nil)
	setRollouts = prometheus.NewDesc("trellis_set_rollouts",
		"AddonSets by the reason of their condition Ready, on this seed.", []string{"state"}, nil)
)

// rolloutStates are the reasons that a set can have on a seed.
var rolloutStates = []string{
	v1.ReasonComplete, v1.ReasonRollingOut, v1.ReasonHalted, v1.ReasonAwaitingApproval, v1.ReasonNoEvidence, v1.ReasonPaused,
	v1.ReasonBlocked, v1.ReasonNoClusterSelected, v1.ReasonRemovalNeedsApproval, v1.ReasonRemoving, v1.ReasonInvalid,
}

// moveCounter counts writes that are moves.
type moveCounter struct{ number atomic.Int64 }

func (c *moveCounter) add() { c.number.Add(1) }

// Describe implements prometheus.Collector.
func (r *Reconciler) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- setClusters
	descriptions <- setMoves
	descriptions <- setRollouts
}

// Collect implements prometheus.Collector.
func (r *Reconciler) Collect(metrics chan<- prometheus.Metric) {
	var counts v1.ClusterCounts
	states := map[string]int{}
	r.mutex.Lock()
	for _, one := range r.sets {
		addCounts(&counts, one.tally.Counts())
		states[waves.ReasonIn(&one.shown.status)]++
	}
	r.mutex.Unlock()
	moves := r.moved.number.Load()
	if r.Core != nil {
		clusters, reason, moved := r.Core()
		addCounts(&counts, clusters)
		states[reason]++
		moves += moved
	}
	for state, number := range map[string]int32{
		"selected": counts.Selected, "current": counts.Current, "moving": counts.Moving, "behind": counts.Behind,
		"failed": counts.Failed, "sick": counts.Sick, "away": counts.Away, "blocked": counts.Blocked, "new": counts.New,
	} {
		metrics <- prometheus.MustNewConstMetric(setClusters, prometheus.GaugeValue, float64(number), state)
	}
	for _, state := range rolloutStates {
		metrics <- prometheus.MustNewConstMetric(setRollouts, prometheus.GaugeValue, float64(states[state]), state)
	}
	metrics <- prometheus.MustNewConstMetric(setMoves, prometheus.CounterValue, float64(moves))
}

func addCounts(to *v1.ClusterCounts, from v1.ClusterCounts) {
	to.Selected += from.Selected
	to.Current += from.Current
	to.Moving += from.Moving
	to.Behind += from.Behind
	to.Failed += from.Failed
	to.Sick += from.Sick
	to.Away += from.Away
	to.Blocked += from.Blocked
	to.New += from.New
}
