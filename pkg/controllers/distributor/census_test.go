package distributor_test

import (
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/trellis-addons/trellis/pkg/controllers/distributor/report"
)

// expectSeedFigures, which say how many catalogues each seed has as they are: "seed state catalogues", by name.
func (w *world) expectSeedFigures(want ...string) {
	w.t.Helper()
	leads := make(chan struct{})
	close(leads)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(report.NewSeedCensus(w.master, w.platform, leads))
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		w.t.Fatalf("%d metrics: %v", len(families), err)
	}
	var got []string
	for _, metric := range families[0].GetMetric() {
		got = append(got, fmt.Sprintf("%s %s %g", metric.GetLabel()[0].GetValue(), metric.GetLabel()[1].GetValue(), metric.GetGauge().GetValue()))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("%s (-want +got):\n%s", families[0].GetName(), diff)
	}
}

// expectSyncTimes are those of the seeds that ever had something, by name, and no other.
func (w *world) expectSyncTimes(want ...string) {
	w.t.Helper()
	leads := make(chan struct{})
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(report.NewSyncTimes(w.master, w.platform, leads))
	if families, err := registry.Gather(); err != nil || len(families) > 0 {
		w.t.Errorf("who does not lead tells %d metrics: %v", len(families), err)
	}
	close(leads)
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		w.t.Fatalf("%d metrics: %v", len(families), err)
	}
	var got []string
	for _, metric := range families[0].GetMetric() {
		at := time.Unix(int64(metric.GetGauge().GetValue()), 0)
		if age := time.Since(at); age < 0 || age > time.Hour {
			w.t.Errorf("%s has a time of %s", metric.GetLabel()[0].GetValue(), at)
		}
		got = append(got, metric.GetLabel()[0].GetValue())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("%s (-want +got):\n%s", families[0].GetName(), diff)
	}
}
