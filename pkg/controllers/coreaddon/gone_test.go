package coreaddon_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/controllers/coreaddon"
	"github.com/trellis-addons/trellis/test/expect"
)

// listState is the state that metric trellis_core_list has at 1.
func (w *world) listState() string {
	w.t.Helper()
	registry := prometheus.NewRegistry()
	expect.NoError(w.t, registry.Register(w.controller))
	families, err := registry.Gather()
	expect.NoError(w.t, err)
	var states []string
	for _, family := range families {
		for _, metric := range family.Metric {
			if family.GetName() == "trellis_core_list" && metric.GetGauge().GetValue() == 1 {
				states = append(states, metric.GetLabel()[0].GetValue())
			}
		}
	}
	return strings.Join(states, " ")
}

// expectList waits until AddonsReady of a cluster has these words, and the metric has that state.
func (w *world) expectList(of *kkpv1.Cluster, condition, state string, words ...string) {
	w.t.Helper()
	expect.Object(w.t, w.seed, availableOf(of), func(found *v1.AddonCatalogue) error {
		kind, reason, _ := strings.Cut(condition, " ")
		if got := w.listState(); got != state {
			return fmt.Errorf("the metric says %q, want %q", got, state)
		}
		return expect.Condition(found, v1.ConditionAddonsReady, kind, reason, words...)
	})
}

// TestAListThatIsRefusedOrGoneIsReported fails where AddonsReady stays True over a refused list (setFor without refused)
// or over a deleted one (unknownText without its last case), also after a restart, when only the installations show
// it; red too where a cluster without an add-on of the list reports it, or the metric does not.
func TestAListThatIsRefusedOrGoneIsReported(t *testing.T) {
	w := newWorld(t)
	of, other := w.cluster("told"), w.cluster("untouched")
	expect.Change(w.t, w.seed, of, func(c *kkpv1.Cluster) { c.Labels["tier"] = "production" })
	w.merged(v1.CatalogueCustom, "prometheus")
	const list = `[{name: monitoring, addonRef: {name: prometheus}, targetNamespace: monitoring, clusterSelector: {matchLabels: {tier: production}}}]`
	w.listed(list)
	stop := w.start()
	w.exists(of, "monitoring")
	w.expectList(of, "False CoreAddonsNotReady", "good")
	w.said(installationOf(of, "monitoring"), v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	w.expectList(of, "True CoreAddonsReady", "good")

	w.listed("[{name: monitoring, addonRef: {name: prometheus}, targetNamespce: monitoring}]")
	w.expectList(of, "Unknown CoreSetUnknown", "refused", `ConfigMap "custom-core-addons"`, `item 1 ("monitoring")`, "targetNamespce", "stays in use")
	w.expectList(other, "Unknown CoreSetUnknown", "refused", `item 1 ("monitoring")`)
	w.listed(list)
	w.expectList(of, "True CoreAddonsReady", "good")
	w.expectList(other, "True CoreAddonsReady", "good")

	w.remove(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: coreaddon.ListName}})
	w.expectList(of, "Unknown CoreSetUnknown", "gone", `ConfigMap "custom-core-addons"`, "no longer exists", "monitoring", "addons.yaml: '[]'")
	w.expectList(other, "True CoreAddonsReady", "gone")
	stop()
	w.start()
	w.expectList(of, "Unknown CoreSetUnknown", "gone", "monitoring")
	w.listed("[]")
	expect.Gone(t, w.seed, installationOf(of, "monitoring"))
	w.expectList(of, "True CoreAddonsReady", "good")
}
