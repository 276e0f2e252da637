package report

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
)

// readWithin bounds a reading of the cache for metrics.
const readWithin = 10 * time.Second

// SyncTimes exports when each seed last got merged content, from the rows of authored catalogues, whenever metrics
// are read. It implements prometheus.Collector.
type SyncTimes struct {
	description *prometheus.Desc
	catalogues  client.Reader
	namespace   string
	leads       <-chan struct{}
	seeds       *text.Words
}

// NewSyncTimes returns the metric, which has figures once leads is closed.
func NewSyncTimes(catalogues client.Reader, namespace string, leads <-chan struct{}) *SyncTimes {
	return &SyncTimes{
		description: prometheus.NewDesc("trellis_seed_synced_timestamp_seconds",
			"When merged content last reached a seed, in seconds since 1970.", []string{"seed"}, nil),
		catalogues: catalogues, namespace: namespace, leads: leads, seeds: text.NewWords(mostSeeds, text.ObjectName),
	}
}

// Describe implements prometheus.Collector.
func (s *SyncTimes) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- s.description }

// Collect implements prometheus.Collector.
func (s *SyncTimes) Collect(metrics chan<- prometheus.Metric) {
	select {
	case <-s.leads:
	default:
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), readWithin)
	defer cancel()
	last := map[string]time.Time{}
	err := eachAuthored(ctx, s.catalogues, s.namespace, func(one *v1.AddonCatalogue) {
		for i := range one.Status.Seeds {
			row := &one.Status.Seeds[i]
			seed := s.seeds.Label(row.Name)
			if row.LastSyncTime != nil && row.LastSyncTime.After(last[seed]) {
				last[seed] = row.LastSyncTime.Time
			}
		}
	})
	if err != nil {
		metrics <- prometheus.NewInvalidMetric(s.description, err)
		return
	}
	for seed, at := range last {
		metrics <- prometheus.MustNewConstMetric(s.description, prometheus.GaugeValue, float64(at.Unix()), seed)
	}
}
