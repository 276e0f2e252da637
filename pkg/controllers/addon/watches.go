package addon

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
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
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/target"
)

// debounce gathers the events of one push of the distributor.
const debounce = 15 * time.Millisecond

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// SetupWithManager registers both controllers. The manager's cache holds Clusters and the merged catalogues of the
// catalogue namespace; metadata of available catalogues is in a cache of its own, since a cache's restrictions hold for
// all forms of a kind.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	written, err := newWritten(mgr)
	if err != nil {
		return err
	}
	if err := mgr.Add(written); err != nil {
		return fmt.Errorf("adding the cache of available catalogues: %w", err)
	}
	r.written = written
	if err := r.watchClusters(mgr, written); err != nil {
		return err
	}
	return r.watchCatalogues(mgr)
}

func newWritten(mgr ctrl.Manager) (cache.Cache, error) {
	written, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		ByObject: map[client.Object]cache.ByObject{&v1.AddonCatalogue{}: cluster.HeldAvailable(trim)},
	})
	if err != nil {
		return nil, fmt.Errorf("making the cache of available catalogues: %w", err)
	}
	return written, nil
}

// trim keeps what isCurrent reads; there may be many thousands of them.
func trim(object any) (any, error) {
	if found, ok := object.(client.Object); ok {
		found.SetManagedFields(slices.DeleteFunc(found.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
			return !isOurStatus(entry)
		}))
	}
	return object, nil
}

var _ toolscache.TransformFunc = trim

func (r *Reconciler) watchClusters(mgr ctrl.Manager, written cache.Cache) error {
	built, err := controller.New("addon", mgr, controller.Options{
		Reconciler: r, MaxConcurrentReconciles: r.Options.Concurrency,
	})
	if err != nil {
		return fmt.Errorf("making controller addon: %w", err)
	}
	for _, watch := range []source.Source{
		source.Func(func(_ context.Context, clusters queue) error {
			r.clusters.Store(&clusters)
			return nil
		}),
		r.Finder.Watch(mgr.GetCache(), cluster.Passes, matters),
		source.Kind[client.Object](mgr.GetCache(), namespaceMetadata(), r.inCluster(client.Object.GetName), appears()),
		source.Kind[client.Object](written, availableMetadata(), r.inCluster(client.Object.GetNamespace)),
	} {
		if err := built.Watch(watch); err != nil {
			return fmt.Errorf("watching for controller addon: %w", err)
		}
	}
	return nil
}

// matters says whether the answer depends on a change of a Cluster; KKP writes its status all the time.
func matters(before, after target.Description) bool {
	return before.UID != after.UID || before.Namespace != after.Namespace || before.KubernetesVersion != after.KubernetesVersion ||
		before.Paused != after.Paused || before.Deleted != after.Deleted || cluster.WorkerName(before) != cluster.WorkerName(after) ||
		before.Annotations[v1.AnnotationInitialInstallations] != after.Annotations[v1.AnnotationInitialInstallations]
}

// appears lets new namespaces through: KKP names a cluster's namespace before it exists.
func appears() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(event.UpdateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// inCluster asks for the namespaces of clusters, and for no others.
func (r *Reconciler) inCluster(namespace func(client.Object) string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
		found, err := r.Finder.Find(ctx, target.Ref{Namespace: namespace(object)})
		if err != nil {
			return nil
		}
		return cluster.Passes(ctx, found)
	})
}

// watchCatalogues registers the controller that looks at all merged catalogues; one request stands for all of them.
func (r *Reconciler) watchCatalogues(mgr ctrl.Manager) error {
	built, err := controller.New("addon-catalogue", mgr, controller.Options{
		Reconciler: reconcile.Func(r.reconcileCatalogue), MaxConcurrentReconciles: 1,
	})
	if err != nil {
		return fmt.Errorf("making controller addon-catalogue: %w", err)
	}
	everything := reconcile.Request{NamespacedName: types.NamespacedName{Name: "everything"}}
	ask := func(q queue) { q.AddAfter(everything, debounce) }
	changes := handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, q queue) { ask(q) },
		UpdateFunc: func(_ context.Context, _ event.UpdateEvent, q queue) { ask(q) },
		DeleteFunc: func(_ context.Context, _ event.DeleteEvent, q queue) { ask(q) },
	}
	merged := predicate.NewPredicateFuncs(func(object client.Object) bool {
		return object.GetNamespace() == r.Options.CatalogueNamespace && object.GetLabels()[v1.LabelRole] == v1.RoleMerged
	})
	// An empty catalogue is an answer too: the first look is made whether or not there is an object.
	first := source.Func(func(_ context.Context, q queue) error {
		r.Marks.OnChange(func() { ask(q) })
		q.AddAfter(everything, debounce)
		return nil
	})
	for _, watch := range []source.Source{
		source.Kind[client.Object](mgr.GetCache(), &v1.AddonCatalogue{}, changes, merged), first,
	} {
		if err := built.Watch(watch); err != nil {
			return fmt.Errorf("watching for controller addon-catalogue: %w", err)
		}
	}
	return nil
}
