package distributor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-addons/trellis/pkg/fence"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/remote"
)

// Options are the controller's settings.
type Options struct {
	// Namespace is the platform namespace, where catalogues and Seeds are. Default: kubermatic.
	Namespace string
	// CatalogueNamespace takes the merged catalogues on every seed. It can't be the platform namespace. Default:
	// addon-catalogue.
	CatalogueNamespace string
	// KKPVersion is the platform's version where no KKP says it. Empty: each Seed's status.versions.kubermatic.
	KKPVersion string
	// WorkerName restricts the controller to Seeds with that worker-name label; empty: those without.
	WorkerName string
	// Resync is the time between two looks at the metadata on a seed. Default: 5 min.
	Resync time.Duration
	// CountEvery is the time between two counts of the installations on a seed. Default: 1 min.
	CountEvery time.Duration
	// Clock for back-off and times in status. Default: the real one.
	Clock clock.WithTicker
}

// Dependencies are what the controller works with.
type Dependencies struct {
	// Master is the view of the master that NewMaster makes.
	Master cluster.Cluster
	// Recorder takes events on catalogues.
	Recorder events.EventRecorder
	// Fence keeps writes to seeds from going out; nil: there is none.
	Fence *fence.Fence
	// SecretKeys are the keys of source Secrets that are handed on.
	SecretKeys fetch.SecretKeys
	Options    Options
}

// Reconciler is the AddonCatalogueDistributor.
type Reconciler struct {
	options  Options
	master   cluster.Cluster
	recorder events.EventRecorder
	// cached reads the master from the controller's own cache and writes to it; direct reads past the cache.
	cached client.Client
	direct client.Reader
	// fence keeps writes to seeds from going out.
	fence *fence.Fence
	// secretKeys of source Secrets are handed on.
	secretKeys fetch.SecretKeys

	readings  readings
	revisions revisions
	merger    merger
	secrets   secretReader
	kube      kubeconfigs
	workers   *workers
	board     *board
	usage     *usageBook
	// troubles are what was told of why catalogues are not ready, by name: status.Told.
	troubles sync.Map
	// budget is shared by the answers of all seeds.
	budget *remote.Budget
}

// New makes the controller.
func New(dependencies Dependencies) *Reconciler {
	options := dependencies.Options
	if options.Namespace == "" {
		options.Namespace = "kubermatic"
	}
	if options.CatalogueNamespace == "" {
		options.CatalogueNamespace = "addon-catalogue"
	}
	if options.Resync == 0 {
		options.Resync = 5 * time.Minute
	}
	if options.CountEvery == 0 {
		options.CountEvery = time.Minute
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Reconciler{
		options: options, master: dependencies.Master, recorder: dependencies.Recorder, board: newBoard(), fence: dependencies.Fence,
		secretKeys: dependencies.SecretKeys,
		cached:     dependencies.Master.GetClient(), direct: dependencies.Master.GetAPIReader(),
		usage: newUsageBook(options.Namespace, options.Clock), budget: remote.NewBudget(answersAtOnce),
	}
}

// Reconcile makes one pass over all catalogues and seeds.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	p := &pass{}
	for _, step := range r.steps() {
		if err := step.run(ctx, p); err != nil {
			return ctrl.Result{}, fmt.Errorf("step %q: %w", step.name, err)
		}
	}
	if len(p.troubles) > 0 {
		log.FromContext(ctx).Error(errors.Join(p.troubles...), "parts of the pass failed and are tried again")
		return ctrl.Result{RequeueAfter: troubleRetry}, nil
	}
	return ctrl.Result{RequeueAfter: p.lookAgain}, nil
}

// troubleRetry is when a pass that could not do a side job is made again.
const troubleRetry = 10 * time.Second
