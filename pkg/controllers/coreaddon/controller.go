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
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/fleet/waves"
)

// Options are the controller's settings.
type Options struct {
	// Namespace is the platform namespace, which has the custom core list. Default: kubermatic.
	Namespace string
	// CatalogueNamespace has the merged catalogues. Default: addon-catalogue.
	CatalogueNamespace string
	// WorkerName restricts the controller to Clusters with that label; empty: those without.
	WorkerName string
	// Concurrency is the number of clusters that are reconciled at a time. Default: 8.
	Concurrency int
	// AllowPrereleases says that a platform of a pre-release version matches ranges that name no pre-release.
	AllowPrereleases bool
	// StatusInterval is the time between two writes of a Core set's status, after the first three writes of a change. Default: 2 s.
	StatusInterval time.Duration
}

// Dependencies are the clients and settings that the controller uses.
type Dependencies struct {
	// Client reads from the manager's cache. Of AddonCatalogues, the cache has only merged ones.
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

// Reconciler is the CoreAddonController. Its requests are those of cluster.Request.
type Reconciler struct {
	Dependencies
	// list reads the custom core list, available the metadata of available catalogues, both from their own caches.
	list, available       client.Reader
	lists                 lists
	reports               reports
	failures, setFailures loop.Failures
	staging               staging
	// moves counts writes of a Core set that change user clusters.
	moves atomic.Int64
	// interesting has the add-ons of the list in force, and the names of their installations. A catalogue of such a name
	// affects all clusters, a user's installation its own cluster.
	interesting atomic.Pointer[map[string]bool]
}

// New returns the controller, with defaults for options that are not set.
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

// Reconcile reconciles the core add-ons of one cluster.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	asked := cluster.Requested(request)
	f := &facts{asked: asked, report: r.reports.forCluster(asked)}
	defer func() { r.staging.touch(f.key(), f.refused, r.Clock.Now()) }()
	outcome := r.failures.BackOff(request.String(), loop.Run(ctx, r.steps(), f))
	if outcome.Is(loop.RetryAt) {
		log.FromContext(ctx).Info("reconciling the core add-ons failed", "problem", outcome.Message, "after", outcome.Recheck.String())
	}
	return loop.Result(outcome), nil
}

// facts are the findings of one reconciliation; each step adds to them.
type facts struct {
	asked target.Ref
	// cluster is empty if there is no Cluster: then only finalizers are removed.
	cluster     target.Description
	terminating bool
	// inForce is the Core set, as of the last count of the cluster; nil without a set.
	inForce       *inForce
	installations []v1.AddonInstallation
	// seed is the name of this seed that the set was decided with; empty if no copy of a set names it.
	seed string
	set  set
	plan plan
	// gates are texts about the installations that AddonsReady waits for, other than core add-ons that are not Ready.
	gates []string
	// wrote is set when an installation was created or updated.
	wrote bool
	// refused is the last write that failed; nil if none did.
	refused *refusedWrite
	// failures are the failed writes, by installation. stale is the reason why nothing was removed: only the cache,
	// not the API server, supports the planned removals. It is usually nil.
	failures map[string]error
	stale    error
	report   *report
}

// key is the key of the cluster in memory.
func (f *facts) key() cluster.Key { return cluster.KeyOf(f.asked) }

// keepOwn drops the installations of other clusters of the namespace.
func (f *facts) keepOwn(of target.Ref) { f.installations = cluster.OnlyOf(of, f.installations) }

// problem is the reason why a reconciliation did not do everything; usually nil.
func (f *facts) problem() error {
	for _, name := range slices.Sorted(maps.Keys(f.failures)) {
		return fmt.Errorf("core add-on %q: %w", name, f.failures[name])
	}
	return f.stale
}

// refusedWrite is a write of an installation that failed, or is impossible.
type refusedWrite struct {
	name string
	err  error
	// isUnasked says that nothing was written, since the API server did not say which installation exists.
	isUnasked bool
}

func failed(err error) *loop.Outcome { return &loop.Outcome{Kind: loop.RetryAt, Message: err.Error()} }
