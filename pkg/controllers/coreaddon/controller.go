package coreaddon

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/target"
	"github.com/trellis-addons/trellis/pkg/waves"
)

// Options are the controller's settings.
type Options struct {
	// Namespace is the platform's, with the custom core list. Default: kubermatic.
	Namespace string
	// CatalogueNamespace holds the merged catalogues. Default: addon-catalogue.
	CatalogueNamespace string
	// WorkerName restricts the controller to Clusters with that label; empty: those without.
	WorkerName string
	// Concurrency is the number of clusters worked on at a time. Default: 8.
	Concurrency int
	// AllowPrereleases lets a platform that is a pre-release lie in ranges that name none.
	AllowPrereleases bool
	// StatusInterval is the time between two writes of a Core set's status, after the first three of a change. Default: 2 s.
	StatusInterval time.Duration
}

// Dependencies are what the controller works with.
type Dependencies struct {
	// Client reads from the manager's cache: of AddonCatalogues the merged ones.
	Client client.Client
	Marks  *mergedcatalogue.Marks
	// Reader reads past the cache.
	Reader   client.Reader
	Recorder events.EventRecorder
	Finder   cluster.Finder
	Live     cluster.LiveReader
	Clock    clock.PassiveClock
	Options  Options
}

// Reconciler is the CoreAddonController. Requests are those of cluster.Request.
type Reconciler struct {
	Dependencies
	// list and available read the list and metadata of available catalogues, from own caches.
	list, available       client.Reader
	lists                 lists
	reports               reports
	failures, setFailures loop.Failures
	staging               staging
	// moves counts writes of a Core set that change user clusters.
	moves atomic.Int64
	// interesting are the add-ons of the list in force, and the names of their installations: a
	// catalogue of such a name concerns all clusters, a user's installation its own cluster.
	interesting atomic.Pointer[map[string]bool]
}

// New makes the controller.
func New(dependencies Dependencies) *Reconciler {
	options := &dependencies.Options
	options.Namespace = cmp.Or(options.Namespace, "kubermatic")
	options.CatalogueNamespace = cmp.Or(options.CatalogueNamespace, "addon-catalogue")
	options.Concurrency = cmp.Or(options.Concurrency, 8)
	options.StatusInterval = cmp.Or(options.StatusInterval, 2*time.Second)
	if dependencies.Clock == nil {
		dependencies.Clock = clock.RealClock{}
	}
	return &Reconciler{Dependencies: dependencies, staging: staging{written: waves.Written{}, touched: map[cluster.Key]bool{}}}
}

// Reconcile makes one pass over the core add-ons of one cluster.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	asked := cluster.Requested(request)
	f := &facts{asked: asked, report: r.reports.forCluster(asked)}
	defer func() { r.staging.touch(f.key(), f.refused, r.Clock.Now()) }()
	outcome := r.failures.BackOff(request.String(), loop.Run(ctx, r.steps(), f))
	if retry, failed := outcome.(loop.RetryAt); failed {
		log.FromContext(ctx).Info("a pass over the core add-ons failed", "problem", retry.Message, "after", retry.After.String())
	}
	return loop.Result(outcome), nil
}

// facts are what a pass knows; each step adds to them.
type facts struct {
	asked target.Ref
	// cluster is empty where there is none: then only finalizers are removed.
	cluster     target.Description
	terminating bool
	// inForce is the Core set, as the cluster was counted last; nil without one.
	inForce       *inForce
	installations []v1.AddonInstallation
	// seed is this seed's name, as the set was decided by it; empty where nothing tells it.
	seed string
	set  set
	plan plan
	// gates are what AddonsReady waits for beside core add-ons that are not Ready, in words.
	gates []string
	// wrote is set when an installation was created or updated.
	wrote bool
	// refused is the last write that failed; nil: none did.
	refused *refusedWrite
	// failures of writes, by installation. Stale is why nothing was removed: the cache alone has what
	// that was planned by. Nil as a rule.
	failures map[string]error
	stale    error
	report   *report
}

// key is what is kept of the cluster by.
func (f *facts) key() cluster.Key { return cluster.KeyOf(f.asked) }

// keepOwn leaves of the namespace's installations those of a cluster.
func (f *facts) keepOwn(of target.Ref) { f.installations = cluster.OnlyOf(of, f.installations) }

// problem is why a pass did not do all that it was to; nil as a rule.
func (f *facts) problem() error {
	for _, name := range slices.Sorted(maps.Keys(f.failures)) {
		return fmt.Errorf("core add-on %q: %w", name, f.failures[name])
	}
	return f.stale
}

// refusedWrite is a write of an installation that failed, or can't be made.
type refusedWrite struct {
	name string
	err  error
	// isUnasked says that nothing is written, since the API server could not be asked what is there.
	isUnasked bool
}

func failed(err error) loop.Outcome { return loop.RetryAt{Message: err.Error()} }
