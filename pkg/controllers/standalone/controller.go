package standalone

import (
	"cmp"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/source"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
)

// Dependencies of the controller.
type Dependencies struct {
	// Client of the seed: Clusters, and metadata of Namespaces and Secrets, from its cache.
	Client client.Client
	// Reader reads past the cache, so that kubeconfigs are not kept in memory.
	Reader client.Reader
	// Identities know which user cluster each Cluster has.
	Identities *cluster.Identities
	// WorkerName is --worker-name; usually empty.
	WorkerName string
	// Interval between two probes of an API server. Default: one minute.
	Interval time.Duration
}

// Reconciler replaces KKP's controllers as far as add-ons need it.
type Reconciler struct {
	Dependencies
	prober *prober
}

// New returns a Reconciler.
func New(dependencies Dependencies) *Reconciler {
	dependencies.Interval = cmp.Or(dependencies.Interval, time.Minute)
	prober := newProber(dependencies.Reader, dependencies.Identities, dependencies.Interval)
	return &Reconciler{Dependencies: dependencies, prober: prober}
}

// SetupWithManager watches Clusters, and the metadata of their namespaces and kubeconfig Secrets.
func (r *Reconciler) SetupWithManager(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).
		Named("standalone").
		For(&kkpv1.Cluster{}).
		WatchesMetadata(&corev1.Namespace{}, toCluster(client.Object.GetName)).
		WatchesMetadata(&corev1.Secret{}, toCluster(client.Object.GetNamespace), builder.WithPredicates(kubeconfigSecrets)).
		WatchesRawSource(source.Func(r.prober.start)).
		WithOptions(controller.Options{RateLimiter: loop.ErrorWaits()}).
		Complete(loop.Traced("standalone", r))
}

// Reconcile brings one Cluster's namespace and status up to date.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var object kkpv1.Cluster
	if err := r.Client.Get(ctx, request.NamespacedName, &object); err != nil {
		r.prober.forget(request.Name)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	described := cluster.Describe(&object)
	if !cluster.BelongsTo(described, r.WorkerName) || described.Paused {
		return loop.Result(&loop.Outcome{Kind: loop.NotMine}), nil
	}
	run := loop.Start(r.Client, &object)
	facts := &facts{cluster: &object}
	if described.Deleted {
		outcome := loop.Run(ctx, r.deletionSteps(), facts)
		if outcome.Is(loop.Done) {
			return ctrl.Result{}, run.SetFinalizer(ctx, v1.FinalizerCleanupNamespace, false)
		}
		return run.Finish(ctx, outcome)
	}
	if err := run.SetFinalizer(ctx, v1.FinalizerCleanupNamespace, true); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return run.Finish(ctx, loop.Run(ctx, r.steps(), facts))
}
