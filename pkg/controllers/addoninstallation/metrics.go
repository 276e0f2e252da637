package addoninstallation

import (
	"context"
	"regexp"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/conditions"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/base/text"
)

// Metrics count the controller's actions.
type Metrics struct {
	delay               prometheus.Histogram
	applied, rolledBack prometheus.Counter
	written, repaired   prometheus.Counter
	issued              *prometheus.CounterVec
}

// NewMetrics creates the metrics and registers them.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	revisions := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "trellis_installation_revisions_total",
		Help: "Revisions of AddonInstallations that were completely applied, by whether they were requested or rolled back to.",
	}, []string{"result"})
	objects := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "trellis_installation_objects_total",
		Help: "Objects in user clusters that were written for a revision, or repaired after drift.",
	}, []string{"done"})
	issued := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "trellis_agent_credentials_issued_total",
		Help: "Credentials of agents, by their type and whether they were issued, including renewals, or could not be.",
	}, []string{"type", "result"})
	for _, kind := range []kubermaticv1.AccessType{kubermaticv1.AccessByToken, kubermaticv1.AccessByCertificate} {
		issued.WithLabelValues(string(kind), "issued")
		issued.WithLabelValues(string(kind), "failed")
	}
	made := &Metrics{
		issued: issued,
		delay: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "trellis_installation_delay_seconds",
			Help:    "Time from the first reconciliation that finds a difference between requested and applied until that is completely applied.",
			Buckets: []float64{0.1, 0.5, 1, 2, 5, 15, 60, 300, 1800, 7200},
		}),
		applied: revisions.WithLabelValues("applied"), rolledBack: revisions.WithLabelValues("rolledBack"),
		written: objects.WithLabelValues("written"), repaired: objects.WithLabelValues("repaired"),
	}
	registerer.MustRegister(revisions, objects, issued, made.delay)
	return made
}

// measure counts the actions of a finished reconciliation, by its new status.
func (m *Metrics) measure(f *facts, now time.Time) {
	m.repaired.Add(float64(len(f.run.Repaired)))
	if f.run.Applied != nil {
		m.written.Add(float64(f.run.Progress.Written))
		m.ended(f, now)
	}
	switch {
	case meta.IsStatusConditionTrue(f.installation.Status.Conditions, kubermaticv1.ConditionApplied):
		f.memory.asked = time.Time{}
	case f.memory.asked.IsZero():
		f.memory.asked = f.run.Now
	}
}

// ended counts a completely applied revision.
func (m *Metrics) ended(f *facts, now time.Time) {
	if f.run.Applied.Rollback != nil {
		m.rolledBack.Inc()
		return
	}
	m.applied.Inc()
	began := f.run.Now
	if !f.memory.asked.IsZero() {
		began = f.memory.asked
	}
	m.delay.Observe(now.Sub(began).Seconds())
}

// mostAddons is the most add-ons with separate figures.
const mostAddons = 200

// NewCensus counts all installations of a seed by state, once leads is closed.
func NewCensus(installations client.Reader, leads <-chan struct{}) *loop.Census {
	description := prometheus.NewDesc("trellis_installations", "AddonInstallations by their state and the reason of their condition Ready.",
		loop.CensusLabels, nil)
	return loop.NewCensus(description, leads, func(ctx context.Context, visit func([]metav1.Condition)) error {
		return eachOf(ctx, installations, func(one *kubermaticv1.AddonInstallation) { visit(one.Status.Conditions) })
	})
}

// NewAddonCensus counts them by applied add-on and state. Only add-ons of which a version was applied, so from
// catalogues, are labels; requested names are not.
func NewAddonCensus(installations client.Reader, leads <-chan struct{}) *loop.Census {
	description := prometheus.NewDesc("trellis_addon_installations",
		"AddonInstallations by the applied add-on and their state; addon is empty before the first one is applied.",
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

// versionName matches a semantic version.
var versionName = regexp.MustCompile(`^v?[0-9][0-9A-Za-z.+-]{0,63}$`)

// NewUpdateCensus counts the installations that could move to a newer version, by applied add-on and newer version.
func NewUpdateCensus(installations client.Reader, leads <-chan struct{}) *loop.Census {
	description := prometheus.NewDesc("trellis_available_updates",
		"AddonInstallations for which a newer version fits, by the applied add-on and that version.", []string{"addon", "version"}, nil)
	addons, versions := text.NewWords(mostAddons, text.ObjectName), text.NewWords(mostAddons, versionName)
	return loop.NewLabelledCensus(description, leads, func(ctx context.Context, count func(first, second string)) error {
		return eachOf(ctx, installations, func(one *kubermaticv1.AddonInstallation) {
			if last, update := one.Status.LastApplied, one.Status.AvailableUpdate; update != "" && last != nil {
				count(addons.Label(last.Addon), versions.Label(update))
			}
		})
	})
}

func eachOf(ctx context.Context, installations client.Reader, visit func(*kubermaticv1.AddonInstallation)) error {
	return loop.EachOf(ctx, installations, &kubermaticv1.AddonInstallationList{}, visit)
}
