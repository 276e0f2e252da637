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

	"github.com/trellis-addons/trellis/pkg/base/fence"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/fleet"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/report"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/seed"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/usage"
	"github.com/trellis-addons/trellis/pkg/fetch"
)

// Options are the controller's settings.
type Options struct {
	// Namespace is the platform namespace, where catalogues and Seeds are. Default: kubermatic.
	Namespace string
	// CatalogueNamespace is the namespace of merged catalogues on seeds. Default: addon-catalogue.
	CatalogueNamespace string
	// KKPVersion is the platform's version if a Seed's status has none, as without KKP.
	KKPVersion string
	// WorkerName restricts the controller to Seeds with that label; empty: those without.
	WorkerName string
	// Resync is the time between two lists of a seed. Default: 5 min.
	Resync time.Duration
	// CountEvery is the time between two counts of a seed's installations. Default: 1 min.
	CountEvery time.Duration
	// Clock is for back-off and times in status. Default: the real one.
	Clock clock.WithTicker
}

// Dependencies are the clients and settings that the controller uses.
type Dependencies struct {
	// Master is the client from NewMaster.
	Master   *Master
	Recorder events.EventRecorder
	// Fence stops writes to seeds; nil if there is none.
	Fence *fence.Fence
	// SecretKeys are the keys of source Secrets that are copied to seeds.
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
	departed    map[string]time.Time // deleted catalogues in git, and when they were deleted
	pace        pace
	gathering   loop.Gathering // of everything that a reconciliation reads
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

	// previous are earlier users of Secrets, read once; previousUnsaved: they are not written yet.
	previous        catalogue.PreviousUsers
	previousUnsaved bool

	// runs counts the reconciliations. setReadings and values are for AddonSets; fleet directs their rollouts.
	runs        int64
	setReadings setReadings
	values      secretReader
	fleet       *fleet.Director
}

// New returns the controller, with defaults for options that are not set.
func New(dependencies Dependencies) *Reconciler {
	options := dependencies.Options
	options.Namespace = cmp.Or(options.Namespace, "kubermatic")
	options.CatalogueNamespace = cmp.Or(options.CatalogueNamespace, "addon-catalogue")
	options.Resync = cmp.Or(options.Resync, 5*time.Minute)
	options.CountEvery = cmp.Or(options.CountEvery, time.Minute)
	options.Clock = cmp.Or[clock.WithTicker](options.Clock, clock.RealClock{})
	cached, direct := dependencies.Master.GetClient(), dependencies.Master.GetAPIReader()
	used := usage.NewLedger(options.Namespace, options.Clock, cached, direct)
	checkers := seed.NewCheckers(options.Clock, reportsWithin*options.CountEvery)
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

const (
	// troubleRetry is the delay after a reconciliation with partial failures.
	troubleRetry = 10 * time.Second
	// reportsWithin is the number of counts within which a new seed reports on its checks of sources: seeds and master look once a minute.
	reportsWithin = 3
)

// Reconcile reconciles all catalogues and seeds.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	f := &facts{}
	outcome := loop.Run(ctx, r.steps(), f)
	switch outcome.Kind {
	case loop.RetryAt:
		log.FromContext(ctx).Info("a reconciliation failed; trying again", "problem", outcome.Message)
	case loop.Done:
		outcome = &loop.Outcome{Kind: loop.Done, Recheck: f.recheck}
		if len(f.troubles) > 0 {
			log.FromContext(ctx).Error(errors.Join(f.troubles...), "some steps of the reconciliation failed; trying again")
			outcome = &loop.Outcome{Kind: loop.RetryAt, Recheck: troubleRetry}
		}
	}
	return loop.Result(r.failures.BackOff(request.Name, outcome)), nil
}
