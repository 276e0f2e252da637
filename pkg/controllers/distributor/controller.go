package distributor

import (
	"cmp"
	"context"
	"errors"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/fleet"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/report"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/seed"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/usage"
	"github.com/trellis-addons/trellis/pkg/fence"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/loop"
)

// Options are the controller's settings.
type Options struct {
	// Namespace is the platform namespace, where catalogues and Seeds are. Default: kubermatic.
	Namespace string
	// CatalogueNamespace is that of merged catalogues on seeds. Default: addon-catalogue.
	CatalogueNamespace string
	// KKPVersion is the platform's version where a Seed's status has none, as without KKP.
	KKPVersion string
	// WorkerName restricts the controller to Seeds with that label; empty: those without.
	WorkerName string
	// Resync is the time between two lists of a seed. Default: 5 min.
	Resync time.Duration
	// CountEvery is the time between two counts of a seed's installations. Default: 1 min.
	CountEvery time.Duration
	// Clock for back-off and times in status. Default: the real one.
	Clock clock.WithTicker
}

// Dependencies are what the controller works with.
type Dependencies struct {
	// Master is the client that NewMaster makes.
	Master   *Master
	Recorder events.EventRecorder
	// Fence keeps writes to seeds from being sent; nil: there is none.
	Fence *fence.Fence
	// SecretKeys are the keys of source Secrets that seeds get.
	SecretKeys fetch.SecretKeys
	Options    Options
}

// Reconciler is the AddonCatalogueDistributor.
type Reconciler struct {
	options  Options
	master   *Master
	recorder events.EventRecorder
	// cached reads the master from its cache and writes; direct reads past the cache.
	cached     client.Client
	direct     client.Reader
	secretKeys fetch.SecretKeys

	readings    readings
	departed    map[string]time.Time // catalogues in git that are gone, since when
	pace        pace
	gathering   loop.Gathering // of all that a pass reads
	revisions   revisions
	merger      merger
	owners      owners
	secrets     secretReader
	kubeconfigs kubeconfigs
	failures    loop.Failures
	workers     *seed.Workers
	reporter    *report.Reporter
	usage       *usage.Ledger
	checkers    *seed.Checkers

	// former users of Secrets are read once; formerUnkept: they are not written yet.
	former       catalogue.FormerUsers
	formerUnkept bool

	// passes counts them. setReadings and values are of AddonSets; fleet directs their rollouts.
	passes      int64
	setReadings setReadings
	values      secretReader
	fleet       *fleet.Director
}

// New makes the controller.
func New(dependencies Dependencies) *Reconciler {
	options := dependencies.Options
	options.Namespace = cmp.Or(options.Namespace, "kubermatic")
	options.CatalogueNamespace = cmp.Or(options.CatalogueNamespace, "addon-catalogue")
	options.Resync = cmp.Or(options.Resync, 5*time.Minute)
	options.CountEvery = cmp.Or(options.CountEvery, time.Minute)
	options.Clock = cmp.Or[clock.WithTicker](options.Clock, clock.RealClock{})
	cached, direct := dependencies.Master.GetClient(), dependencies.Master.GetAPIReader()
	used := usage.NewLedger(options.Namespace, options.Clock, cached, direct)
	checkers := seed.NewCheckers(options.Clock)
	reporter := report.New(cached, dependencies.Recorder, used, checkers)
	director := fleet.New(cached, dependencies.Recorder, options.Clock)
	workers := seed.NewWorkers(seed.Options{
		Platform: options.Namespace, Namespace: options.CatalogueNamespace, Resync: options.Resync, CountEvery: options.CountEvery,
		Clock: options.Clock, Fence: dependencies.Fence, Identities: seed.NewIdentities(options.Namespace, cached, direct), Usage: used,
		Checkers: checkers,
		Report:   reporter.SeedChanged, ReportSets: director.SeedChanged,
	})
	director.Through(workers)
	return &Reconciler{
		options: options, master: dependencies.Master, recorder: dependencies.Recorder, cached: cached, direct: direct,
		secretKeys: dependencies.SecretKeys, workers: workers, reporter: reporter, usage: used, checkers: checkers,
		fleet: director, gathering: loop.Gathering{Longest: 250 * time.Millisecond},
	}
}

// troubleRetry is when a pass with troubles is made again.
const troubleRetry = 10 * time.Second

// Reconcile makes one pass over all catalogues and seeds.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	f := &facts{}
	outcome := loop.Run(ctx, r.steps(), f)
	switch o := outcome.(type) {
	case loop.RetryAt:
		log.FromContext(ctx).Info("a pass failed and is tried again", "problem", o.Message)
	case loop.Done:
		outcome = loop.Done{Recheck: f.recheck}
		if len(f.troubles) > 0 {
			log.FromContext(ctx).Error(errors.Join(f.troubles...), "parts of the pass failed and are tried again")
			outcome = loop.RetryAt{After: troubleRetry}
		}
	}
	return loop.Result(r.failures.BackOff(request.Name, outcome)), nil
}
