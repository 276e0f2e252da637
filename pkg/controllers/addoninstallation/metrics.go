package addoninstallation

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/conditions"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/text"
)

// Metrics count what the controller does.
type Metrics struct {
	delay               prometheus.Histogram
	applied, rolledBack prometheus.Counter
	written, repaired   prometheus.Counter
	issued              *prometheus.CounterVec
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	revisions := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "trellis_installation_revisions_total",
		Help: "Revisions of AddonInstallations that were applied to their end, by whether they were asked for or brought back.",
	}, []string{"result"})
	objects := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "trellis_installation_objects_total",
		Help: "Objects in user clusters, by what was done: written for a revision, or repaired since they had drifted.",
	}, []string{"done"})
	issued := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "trellis_agent_credentials_issued_total",
		Help: "Credentials of agents, by their type and whether they were issued, as a renewal is too, or could not be had.",
	}, []string{"type", "result"})
	for _, kind := range []kubermaticv1.AccessType{kubermaticv1.AccessByToken, kubermaticv1.AccessByCertificate} {
		issued.WithLabelValues(string(kind), "issued")
		issued.WithLabelValues(string(kind), "failed")
	}
	made := &Metrics{
		issued: issued,
		delay: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "trellis_installation_delay_seconds",
			Help:    "Time from the first pass that found something else asked for than is applied, until that was applied to its end.",
			Buckets: []float64{0.1, 0.5, 1, 2, 5, 15, 60, 300, 1800, 7200},
		}),
		applied: revisions.WithLabelValues("applied"), rolledBack: revisions.WithLabelValues("rolledBack"),
		written: objects.WithLabelValues("written"), repaired: objects.WithLabelValues("repaired"),
	}
	registerer.MustRegister(revisions, objects, issued, made.delay)
	return made
}

// measure what a pass did that ends now, by the status that it made.
func (m *Metrics) measure(f *facts, now time.Time) {
	m.repaired.Add(float64(len(f.pass.Repaired)))
	if f.pass.Applied != nil {
		m.written.Add(float64(f.pass.Progress.Written))
		m.ended(f, now)
	}
	switch {
	case meta.IsStatusConditionTrue(f.installation.Status.Conditions, kubermaticv1.ConditionApplied):
		f.memory.asked = time.Time{}
	case f.memory.asked.IsZero():
		f.memory.asked = f.pass.Now
	}
}

// ended says that a revision was applied to its end.
func (m *Metrics) ended(f *facts, now time.Time) {
	if f.pass.Applied.Rollback != nil {
		m.rolledBack.Inc()
		return
	}
	m.applied.Inc()
	began := f.pass.Now
	if !f.memory.asked.IsZero() {
		began = f.memory.asked
	}
	m.delay.Observe(now.Sub(began).Seconds())
}

// mostAddons have figures of their own.
const mostAddons = 200

// NewCensus counts all installations of a seed by how they stand, from when leads is closed on.
func NewCensus(installations client.Reader, leads <-chan struct{}) *loop.Census {
	description := prometheus.NewDesc("trellis_installations", "AddonInstallations by how they stand and the reason of their condition Ready.",
		loop.CensusLabels, nil)
	return loop.NewCensus(description, leads, func(ctx context.Context, visit func([]metav1.Condition)) error {
		return eachOf(ctx, installations, func(one *kubermaticv1.AddonInstallation) { visit(one.Status.Conditions) })
	})
}

// NewAddonCensus counts them by what they have applied and how they stand. Add-ons are those of
// catalogues, since something of them was applied; what anybody asks for makes no figures.
func NewAddonCensus(installations client.Reader, leads <-chan struct{}) *loop.Census {
	description := prometheus.NewDesc("trellis_addon_installations",
		"AddonInstallations by the add-on that is applied and how they stand; addon is empty where nothing was applied yet.",
		[]string{"addon", "state"}, nil)
	addons := text.NewWords(mostAddons, text.ObjectName)
	return loop.NewLabelledCensus(description, leads, func(ctx context.Context, count func(first, second string)) error {
		return eachOf(ctx, installations, func(one *kubermaticv1.AddonInstallation) {
			addon := ""
			if last := one.Status.LastApplied; last != nil && last.Addon != "" {
				addon = addons.Label(last.Addon)
			}
			state, _ := conditions.StateOf(one.Status.Conditions)
			count(addon, string(state))
		})
	})
}

func eachOf(ctx context.Context, installations client.Reader, visit func(*kubermaticv1.AddonInstallation)) error {
	list := &kubermaticv1.AddonInstallationList{}
	if err := installations.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range list.Items {
		visit(&list.Items[i])
	}
	return nil
}
