package addon

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// SetupWithManager registers both controllers. The manager's cache has Clusters and the merged catalogues; metadata
// of available catalogues is in its own cache, since a cache's restrictions apply to all forms of a kind.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	written, err := loop.Cache(mgr, map[client.Object]cache.ByObject{&v1.AddonCatalogue{}: cluster.HeldAvailable(trim)})
	if err != nil {
		return fmt.Errorf("creating the cache of available catalogues: %w", err)
	}
	if err := mgr.Add(written); err != nil {
		return fmt.Errorf("adding the cache of available catalogues: %w", err)
	}
	r.written = written
	err = loop.Register(mgr, "addon", controller.Options{Reconciler: r, MaxConcurrentReconciles: r.Options.Concurrency},
		source.Func(func(_ context.Context, clusters queue) error {
			r.clusters.Store(&clusters)
			return nil
		}),
		r.Finder.Watch(mgr.GetCache(), cluster.RequestsFor, matters),
		source.Kind[client.Object](mgr.GetCache(), loop.Metadata(namespaceKind), handler.EnqueueRequestsFromMapFunc(r.clustersIn), appears()),
		source.Kind[client.Object](written, loop.Metadata(availableKind), handler.EnqueueRequestsFromMapFunc(r.clusterOf)),
	)
	if err != nil {
		return err
	}
	return r.watchCatalogues(mgr)
}

// trim drops fields that isCurrent does not read; there may be many thousands of objects.
func trim(object any) (any, error) {
	if found, ok := object.(client.Object); ok {
		found.SetManagedFields(slices.DeleteFunc(found.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
			return !isOurStatus(entry)
		}))
	}
	return object, nil
}

// matters says whether a change affects the offer; KKP writes a Cluster's status all the time.
func matters(before, after target.Description) bool {
	return before.UID != after.UID || before.Namespace != after.Namespace || before.KubernetesVersion != after.KubernetesVersion ||
		before.Paused != after.Paused || before.Deleted != after.Deleted || cluster.WorkerName(before) != cluster.WorkerName(after) ||
		before.Annotations[v1.AnnotationInitialInstallations] != after.Annotations[v1.AnnotationInitialInstallations]
}

// appears passes new namespaces: KKP names a cluster's namespace before it exists.
func appears() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(event.UpdateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// clustersIn are the requests for the clusters of a namespace, if there are any.
func (r *Reconciler) clustersIn(ctx context.Context, namespace client.Object) []reconcile.Request {
	return r.known(ctx, cluster.RequestsIn(ctx, r.Finder, namespace.GetName()))
}

// clusterOf is the request for the cluster of an available catalogue.
func (r *Reconciler) clusterOf(ctx context.Context, available client.Object) []reconcile.Request {
	return r.known(ctx, cluster.RequestsOfAvailable(ctx, r.Finder, available))
}

// known drops requests for clusters that do not exist.
func (r *Reconciler) known(ctx context.Context, requests []reconcile.Request) []reconcile.Request {
	return slices.DeleteFunc(requests, func(one reconcile.Request) bool {
		_, err := r.Finder.Find(ctx, cluster.Requested(one))
		return err != nil
	})
}

// watchCatalogues registers the controller of all merged catalogues: one request for all of them.
func (r *Reconciler) watchCatalogues(mgr ctrl.Manager) error {
	everything := reconcile.Request{NamespacedName: types.NamespacedName{Name: "everything"}}
	merged := predicate.NewPredicateFuncs(func(object client.Object) bool {
		return object.GetNamespace() == r.Options.CatalogueNamespace && object.GetLabels()[v1.LabelRole] == v1.RoleMerged
	})
	// The first reconciliation needs no object: an empty catalogue is an offer too.
	first := source.Func(func(_ context.Context, q queue) error {
		r.Marks.OnChange(func() { r.gathering.Ask(q, everything) })
		r.gathering.Ask(q, everything)
		return nil
	})
	return loop.Register(mgr, "addon-catalogue",
		controller.Options{Reconciler: r.gathering.Wrap(r.reconcileCatalogue), MaxConcurrentReconciles: 1},
		source.Kind[client.Object](mgr.GetCache(), &v1.AddonCatalogue{}, r.gathering.Changes(everything), merged), first)
}
