package addon

import (
	"context"
	"fmt"
	"sync/atomic"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/cluster"
)

// Options are the controller's settings.
type Options struct {
	// CatalogueNamespace holds the merged catalogues. Default: addon-catalogue.
	CatalogueNamespace string
	// WorkerName restricts the controller to Clusters with that worker-name label; empty: those without.
	WorkerName string
	// AllowPrereleases lets a platform that is a pre-release lie in ranges that name none.
	AllowPrereleases bool
	// Concurrency is the number of clusters worked on at a time. Default: 8.
	Concurrency int
}

// Dependencies are what the controller works with.
type Dependencies struct {
	// Client reads Clusters and merged catalogues from the manager's cache, and writes.
	Client client.Client
	// Reader reads past the cache.
	Reader  client.Reader
	Finder  cluster.Finder
	Options Options
}

// Reconciler is the AddonController.
type Reconciler struct {
	Dependencies
	offers offers
	// written reads the metadata of available catalogues from a cache of its own.
	written client.Reader
	// clusters is the queue of controller addon, once it runs.
	clusters atomic.Pointer[queue]
}

// New makes the controller.
func New(dependencies Dependencies) *Reconciler {
	options := &dependencies.Options
	if options.CatalogueNamespace == "" {
		options.CatalogueNamespace = "addon-catalogue"
	}
	if options.Concurrency == 0 {
		options.Concurrency = 8
	}
	return &Reconciler{Dependencies: dependencies}
}

// Reconcile makes one pass over one Cluster.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	f := &facts{name: request.Name}
	for _, step := range r.steps() {
		done, err := step.run(ctx, f)
		if err != nil {
			return ctrl.Result{}, fmt.Errorf("step %q: %w", step.name, err)
		}
		if done {
			break
		}
	}
	return ctrl.Result{}, nil
}

// facts are what a pass knows; each step adds to them.
type facts struct {
	name      string
	cluster   *kkpv1.Cluster
	namespace string
	offer     *catalogue.Availability
}

// step is one step of a pass. Done ends the pass: nothing is left to do until something changes.
type step struct {
	name string
	run  func(ctx context.Context, f *facts) (done bool, err error)
}

func (r *Reconciler) steps() []step {
	return []step{
		{"find", r.find},     // the Cluster, if it is ours and has a usable namespace
		{"decide", r.decide}, // what it is offered
		{"write", r.write},   // where the metadata does not say that it is there
	}
}
