package addon

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/base/lru"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
)

// Options are the controller's settings.
type Options struct {
	// CatalogueNamespace has the merged catalogues. Default: addon-catalogue.
	CatalogueNamespace string
	// WorkerName restricts the controller to Clusters with that label; empty: those without.
	WorkerName string
	// AllowPrereleases says that a platform of a pre-release version matches ranges that name no pre-release.
	AllowPrereleases bool
	// Concurrency is the number of clusters that are reconciled at a time. Default: 8.
	Concurrency int
}

// Dependencies are the clients and settings that the controller uses.
type Dependencies struct {
	// Client reads from the manager's cache, and writes.
	Client client.Client
	Marks  *mergedcatalogue.Marks
	// Reader reads past the cache.
	Reader   client.Reader
	Finder   cluster.Finder
	Recorder events.EventRecorder
	Metrics  *Metrics
	Options  Options
}

// Reconciler is the AddonController.
type Reconciler struct {
	Dependencies
	offers   offers
	failures loop.Failures
	// gathering collects changes of merged catalogues.
	gathering loop.Gathering
	// reported has, by cluster, the last reported problems of requests.
	reported lru.Cache[target.Ref, string]
	// written reads the metadata of available catalogues from its own cache.
	written client.Reader
	// clusters is the queue of controller addon, once it runs.
	clusters atomic.Pointer[queue]
}

// New returns the controller, with defaults for options that are not set.
func New(dependencies Dependencies) *Reconciler {
	options := &dependencies.Options
	options.CatalogueNamespace = cmp.Or(options.CatalogueNamespace, "addon-catalogue")
	options.Concurrency = cmp.Or(options.Concurrency, 8)
	dependencies.Metrics = cmp.Or(dependencies.Metrics, NewMetrics(prometheus.NewRegistry()))
	return &Reconciler{
		gathering:    loop.Gathering{Longest: time.Second},
		Dependencies: dependencies, offers: offers{preReleases: options.AllowPrereleases, metrics: dependencies.Metrics},
	}
}

// Reconcile reconciles one cluster. Requests are those of cluster.Request.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	f := &facts{asked: cluster.Requested(request)}
	outcome := r.failures.BackOff(request.String(), loop.Run(ctx, r.steps(), f))
	if !outcome.Is(loop.Stalled) || outcome.Reason != v1.EventRequestRefused {
		r.reported.Put(f.asked, "", 0)
	}
	logOutcome(ctx, outcome)
	return loop.Result(outcome), nil
}
