package distributor_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/conditions"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/fleet"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/report"
	"github.com/trellis-addons/trellis/test/expect"
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

// Red when a set of the platform is not counted by the reason of its Ready, or when one of another namespace is.
func TestSetsAreCounted(t *testing.T) {
	w := newWorld(t)
	for name, reason := range map[string]string{"lost": v1.ReasonNoClusterSelected, "slip": v1.ReasonNoClusterSelected, "stuck": v1.ReasonBlocked} {
		set := w.setOf(name)
		expect.Create(t, w.master, set)
		expect.ChangeStatus(t, w.master, set, func(set *v1.AddonSet) {
			conditions.Set(&set.Status.Conditions, metav1.Condition{Type: v1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: "as tested"})
		})
	}
	leads := make(chan struct{})
	close(leads)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(fleet.NewCensus(w.master, w.platform, leads))
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatalf("%d metrics: %v", len(families), err)
	}
	got := map[string]float64{}
	for _, metric := range families[0].GetMetric() {
		got[metric.GetLabel()[0].GetValue()] = metric.GetGauge().GetValue() // labels are sorted
	}
	if diff := cmp.Diff(map[string]float64{v1.ReasonNoClusterSelected: 2, v1.ReasonBlocked: 1}, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", families[0].GetName(), diff)
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
