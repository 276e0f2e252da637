package clusterupgrade

import (
	"cmp"
	"context"
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
	"github.com/trellis-addons/trellis/pkg/fleet/upgrade"
)

// Options are the controller's settings.
type Options struct {
	// CatalogueNamespace has the merged catalogues and the copies of AddonSets.
	CatalogueNamespace string
	// WorkerName restricts the controller to Clusters with that label; empty: those without.
	WorkerName string
	// AllowPrereleases says that a platform of a pre-release version matches ranges that name no pre-release.
	AllowPrereleases bool
	// Concurrency is the number of clusters that are reconciled at a time. Default: 4.
	Concurrency int
	// Rules say whether, and for how long, upgrades wait.
	Rules upgrade.Rules
}

// Holder writes the annotations that delay upgrades to Clusters.
type Holder interface {
	Hold(ctx context.Context, ref target.Ref, wanted cluster.Holds) error
}

// CoreList returns the add-on references in the core list and the rules for a cluster, by the names of its
// installations. It also returns the Core set, which may have pinned these installations to other versions; nil if
// there is none.
type CoreList func(ctx context.Context, of target.Description) (map[string]v1.AddonReference, *v1.AddonSet, error)

// Dependencies are the clients and settings that the controller uses.
type Dependencies struct {
	// Client reads from the manager's cache. Of AddonCatalogues, the cache has only merged ones.
	Client client.Client
	Marks  *mergedcatalogue.Marks
	// Reader reads past the cache.
	Reader   client.Reader
	Recorder events.EventRecorder
	Finder   cluster.Finder
	Holder   Holder
	CoreList CoreList
	Clock    clock.PassiveClock
	Options  Options
}

// Reconciler is the controller. Requests are those of cluster.Request.
type Reconciler struct {
	Dependencies
	reports  reports
	failures loop.Failures
}

// New returns the controller, with defaults for options that are not set.
func New(dependencies Dependencies) *Reconciler {
	options := &dependencies.Options
	options.CatalogueNamespace = cmp.Or(options.CatalogueNamespace, "addon-catalogue")
	options.Concurrency = cmp.Or(options.Concurrency, 4)
	if dependencies.Clock == nil {
		dependencies.Clock = clock.RealClock{}
	}
	return &Reconciler{Dependencies: dependencies}
}

// facts are the findings of one reconciliation; each step adds to them.
type facts struct {
	asked    target.Ref
	cluster  target.Description
	report   *report
	observed upgrade.ClusterState
	decision upgrade.Decision
}

// Reconcile reconciles one Cluster.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	f := &facts{asked: cluster.Requested(request)}
	outcome := r.failures.BackOff(request.String(), loop.Run(ctx, r.steps(), f))
	if outcome.Is(loop.RetryAt) {
		log.FromContext(ctx).Info("reconciling the annotations that delay upgrades "+
			"failed", "problem", outcome.Message, "after", outcome.Recheck.String())
	}
	return loop.Result(outcome), nil
}

func failed(err error) *loop.Outcome {
	return &loop.Outcome{Kind: loop.RetryAt, Message: err.Error(), Recheck: time.Second}
}
