package addon

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	// decisions counts how often it was decided what a platform is offered: once for each distinct pair of versions when the
	// catalogue changes, whatever the number of clusters.
	decisions = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "trellis_available_decisions_total",
		Help: "Decisions on what clusters of one KKP and Kubernetes version are offered.",
	})
	// writes counts clusters whose available catalogue was written.
	writes = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "trellis_available_writes_total",
		Help: "Available catalogues that were written because they differed from what was decided.",
	})
)

func init() { metrics.Registry.MustRegister(decisions, writes) }
