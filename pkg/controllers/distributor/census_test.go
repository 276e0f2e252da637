package distributor_test

import (
	"fmt"

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
