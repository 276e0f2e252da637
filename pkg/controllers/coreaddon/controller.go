package coreaddon

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/backoff"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/mergedcatalogue"
)

// Waits after failures in a row.
const (
	firstRetry = time.Second
	mostRetry  = 5 * time.Minute
)

// Options are the controller's settings.
type Options struct {
	// Namespace is the platform's, where the custom core list stands. Default: kubermatic.
	Namespace string
	// CatalogueNamespace holds the merged catalogues. Default: addon-catalogue.
	CatalogueNamespace string
	// WorkerName restricts the controller to Clusters with that worker-name label; empty: those without.
	WorkerName string
	// Concurrency is the number of clusters worked on at a time. Default: 8.
	Concurrency int
}

// Dependencies are what the controller works with.
type Dependencies struct {
	// Client reads from the manager's cache, which holds of AddonCatalogues the merged ones.
	Client client.Client
	// Marks tells merged catalogues from whatever else has their names.
	Marks *mergedcatalogue.Marks
	// Reader reads past the cache.
	Reader   client.Reader
	Recorder events.EventRecorder
	Finder   cluster.Finder
	Options  Options
}

// Reconciler is the CoreAddonController. A request's name is the namespace of a cluster.
type Reconciler struct {
	Dependencies
	// list reads the custom core list, available the metadata of available catalogues, from caches of their own.
	list, available client.Reader
	lists           lists
	reports         reports
	// interesting are the add-ons of the list in force; a catalogue that has one of them concerns all clusters.
	interesting atomic.Pointer[map[string]bool]
}

// New makes the controller.
func New(dependencies Dependencies) *Reconciler {
	options := &dependencies.Options
	if options.Namespace == "" {
		options.Namespace = "kubermatic"
	}
	if options.CatalogueNamespace == "" {
		options.CatalogueNamespace = "addon-catalogue"
	}
	if options.Concurrency == 0 {
		options.Concurrency = 8
	}
	return &Reconciler{Dependencies: dependencies}
}

// Reconcile makes one pass over the core add-ons of one cluster.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	f := &facts{namespace: request.Name, report: r.reports.of(request.Name)}
	outcome := loop.Run(ctx, r.steps(), f)
	if retry, failed := outcome.(loop.RetryAt); failed {
		f.report.tries++
		retry.After = backoff.After(f.report.tries, firstRetry, mostRetry)
		log.FromContext(ctx).Info("a pass over the core add-ons failed", "problem", retry.Message, "after", retry.After.String())
		return loop.Result(retry), nil
	}
	f.report.tries = 0
	return loop.Result(outcome), nil
}

// facts are what a pass knows; each step adds to them.
type facts struct {
	namespace string
	// cluster is nil where none has the namespace: then only what is gone is let go.
	cluster *kkpv1.Cluster
	// terminating is set while the namespace is being deleted.
	terminating   bool
	installations []v1.AddonInstallation
	set           set
	plan          plan
	// wrote is set when an installation was made or put right.
	wrote bool
	// failures of writes, by installation.
	failures map[string]error
	report   *report
}

func failed(err error) loop.Outcome { return loop.RetryAt{Message: err.Error()} }
