package cluster

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

var userClusters = prometheus.NewDesc("trellis_user_clusters",
	"User clusters that installations need, by whether they are connected and the reason why not.", []string{"state", "reason"}, nil)

// Describe implements prometheus.Collector.
func (c *Connections) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- userClusters }

// Collect implements prometheus.Collector.
func (c *Connections) Collect(metrics chan<- prometheus.Metric) {
	for reason, count := range c.byReason() {
		state := "notConnected"
		if reason == "" {
			state = "connected"
		}
		metrics <- prometheus.MustNewConstMetric(userClusters, prometheus.GaugeValue, float64(count), state, reason)
	}
}

// byReason are the numbers of clusters by the reason why they are not connected; "" has the connected ones.
func (c *Connections) byReason() map[string]int {
	c.mutex.Lock()
	all := slices.Collect(maps.Values(c.connectors))
	c.mutex.Unlock()
	counts := map[string]int{"": 0}
	for _, k := range all {
		counts[k.reason()]++
	}
	return counts
}

func (k *connector) reason() string {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.problem == nil {
		return ""
	}
	return k.problem.Reason
}
