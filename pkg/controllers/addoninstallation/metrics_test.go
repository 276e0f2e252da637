package addoninstallation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/controllers/addoninstallation"
	"github.com/trellis-addons/trellis/test/expect"
)

// figuresOf are the figures of a registry as "name labels value", without the common prefix; of histograms the count.
func figuresOf(t testing.TB, from prometheus.Gatherer) (figures []string) {
	t.Helper()
	families, err := from.Gather()
	expect.NoError(t, err)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			words := []string{strings.TrimPrefix(family.GetName(), "trellis_")}
			for _, label := range metric.GetLabel() {
				words = append(words, label.GetValue())
			}
			value := metric.GetGauge().GetValue() + metric.GetCounter().GetValue() + float64(metric.GetHistogram().GetSampleCount())
			figures = append(figures, strings.Join(append(words, fmt.Sprint(value)), " "))
		}
	}
	slices.Sort(figures)
	return figures
}

// expectFigures waits for figures of the controller.
func (w *world) expectFigures(want ...string) {
	w.t.Helper()
	want = slices.Concat([]string{
		"agent_credentials_issued_total failed Certificate 0", "agent_credentials_issued_total failed Token 0",
		"agent_credentials_issued_total issued Certificate 0", "agent_credentials_issued_total issued Token 0",
	}, want)
	expect.Eventually(w.t, expect.Patience, func() error {
		if diff := cmp.Diff(want, figuresOf(w.t, w.figures)); diff != "" {
			return fmt.Errorf("figures (-want +got):\n%s", diff)
		}
		return nil
	})
}

// TestInstallationsAreCounted: one is Ready and one names an add-on that no catalogue has; the first is edited, and
// drifts. It fails if an installation is not counted by its state and reason, or is counted by an add-on that is only
// requested, if a revision, a written or a repaired object is not counted, and if a reconciliation that applies nothing
// is.
func TestInstallationsAreCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.publish("counted", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"}, offered{version: "1.1.0"})
	object := w.install("counted", "1.0.0")
	w.ready(object)
	other := &kubermaticv1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "unknown"}}
	other.Spec.AddonRef.Name, other.Spec.TargetNamespace = "unknown", "nowhere"
	w.create(other)
	w.expectSummary(other, "False", kubermaticv1.ReasonAddonUnknown, "")
	leads := make(chan struct{})
	close(leads)
	registry, mine := prometheus.NewPedanticRegistry(), client.NewNamespacedClient(w.seed, w.namespace)
	registry.MustRegister(addoninstallation.NewCensus(mine, leads), addoninstallation.NewAddonCensus(mine, leads),
		addoninstallation.NewUpdateCensus(mine, leads))
	if diff := cmp.Diff([]string{
		"addon_installations  failing 1", "addon_installations counted ready 1",
		"available_updates counted 1.1.0 1", "installations AddonUnknown failing 1", "installations Ready ready 1",
	}, figuresOf(t, registry)); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}

	w.expectFigures("installation_delay_seconds 1", "installation_objects_total repaired 0", "installation_objects_total written 2",
		"installation_revisions_total applied 1", "installation_revisions_total rolledBack 0")
	settings := w.settings(object)
	settings.Data = map[string]string{"version": "edited"}
	expect.Update(t, w.seed, settings)
	w.lookAgain(object)
	w.expectFigures("installation_delay_seconds 1", "installation_objects_total repaired 1", "installation_objects_total written 2",
		"installation_revisions_total applied 1", "installation_revisions_total rolledBack 0")
	w.edit(object, func(object *kubermaticv1.AddonInstallation) { object.Spec.AddonRef.Version = "1.1.0" })
	w.expectFigures("installation_delay_seconds 2", "installation_objects_total repaired 1", "installation_objects_total written 3",
		"installation_revisions_total applied 2", "installation_revisions_total rolledBack 0")
}
