package loop_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-addons/trellis/pkg/base/loop"
)

// gathered are the figures of a registry, by labels.
func gathered(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			text := ""
			for _, label := range metric.GetLabel() {
				text += label.GetValue() + " "
			}
			found[text] += metric.GetGauge().GetValue()
		}
	}
	return found
}

// TestCensusCountsByStateAndReason fails when replicas that don't lead count objects, when a state is left out, or
// when a status that another client wrote makes an unlimited number of series.
func TestCensusCountsByStateAndReason(t *testing.T) {
	conditions := func(state metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: "Ready", Status: state, Reason: reason}}
	}
	objects := [][]metav1.Condition{
		nil, conditions("True", "Ready"), conditions("True", "Ready"), conditions("False", "Conflict"),
		conditions("False", "Fetching"), conditions("Unknown", "ClusterUnreachable"), conditions("False", "no word"),
	}
	leads := make(chan struct{})
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(loop.NewCensus(prometheus.NewDesc("objects", "Objects.", loop.CensusLabels, nil), leads,
		func(_ context.Context, visit func([]metav1.Condition)) error {
			for _, object := range objects {
				visit(object)
			}
			return nil
		}))
	if found := gathered(t, registry); len(found) > 0 {
		t.Errorf("a replica that does not lead counts %v", found)
	}
	close(leads)
	want := map[string]float64{
		" underWay ": 1, "Ready ready ": 2, "Conflict failing ": 1, "Fetching underWay ": 1, "ClusterUnreachable unknown ": 1, "other failing ": 1,
	}
	if diff := cmp.Diff(want, gathered(t, registry)); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
	for i := range 1000 {
		objects = append(objects, conditions("False", fmt.Sprintf("MadeUp%d", i)))
	}
	if found := gathered(t, registry); len(found) > 110 {
		t.Errorf("%d series of made up reasons", len(found))
	}
}
