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
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/target"
	"github.com/trellis-addons/trellis/pkg/upgrade"
)

// Options are the controller's settings.
type Options struct {
	// CatalogueNamespace holds the merged catalogues and the copies of AddonSets.
	CatalogueNamespace string
	// WorkerName restricts the controller to Clusters with that label; empty: those without.
	WorkerName string
	// AllowPrereleases lets a platform that is a pre-release lie in ranges that name none.
	AllowPrereleases bool
	// Concurrency is the number of clusters worked on at a time. Default: 4.
	Concurrency int
	// Rules say whether, and for how long, upgrades wait.
	Rules upgrade.Rules
}

// Holder writes what holds upgrades onto Clusters.
type Holder interface {
	Hold(ctx context.Context, ref target.Ref, wanted cluster.Holds) error
}

// CoreList says what core list and rules have for a cluster, by the names of its installations, which a
// Core set may have pinned to something else, and that set; nil: there is none.
type CoreList func(ctx context.Context, of target.Description) (map[string]v1.AddonReference, *v1.AddonSet, error)

// Dependencies are what the controller works with.
type Dependencies struct {
	// Client reads from the manager's cache: of AddonCatalogues the merged ones.
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

// New makes the controller.
func New(dependencies Dependencies) *Reconciler {
	options := &dependencies.Options
	options.CatalogueNamespace = cmp.Or(options.CatalogueNamespace, "addon-catalogue")
	options.Concurrency = cmp.Or(options.Concurrency, 4)
	if dependencies.Clock == nil {
		dependencies.Clock = clock.RealClock{}
	}
	return &Reconciler{Dependencies: dependencies}
}

// facts are what a pass knows; each step adds to them.
type facts struct {
	asked    target.Ref
	cluster  target.Description
	report   *report
	seen     upgrade.Seen
	decision upgrade.Decision
}

// Reconcile makes one pass over one Cluster.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	f := &facts{asked: cluster.Requested(request)}
	outcome := r.failures.BackOff(request.String(), loop.Run(ctx, r.steps(), f))
	if retry, failed := outcome.(loop.RetryAt); failed {
		log.FromContext(ctx).Info("a pass over what holds upgrades failed", "problem", retry.Message, "after", retry.After.String())
	}
	return loop.Result(outcome), nil
}

func failed(err error) loop.Outcome { return loop.RetryAt{Message: err.Error(), After: time.Second} }
