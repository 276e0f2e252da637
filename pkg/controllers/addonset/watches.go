package addonset

import (
	"context"
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
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
	"github.com/trellis-addons/trellis/pkg/values"
)

// SetupWithManager registers both queues. The manager's cache has Clusters, AddonInstallations, namespaces
// (metadata), the merged catalogues and the copies of sets.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	secrets, err := r.platformSecrets(mgr)
	if err != nil {
		return err
	}
	if r.caches, err = cachesOf(mgr); err != nil {
		return err
	}
	sets := loop.Register(mgr, "addonset", controller.Options{Reconciler: reconcile.Func(r.reconcileSet), MaxConcurrentReconciles: 1},
		source.Func(r.keepSets),
		source.Kind[client.Object](mgr.GetCache(), &v1.AddonSet{}, &handler.EnqueueRequestForObject{}, r.copyChanged()),
		source.Kind[client.Object](mgr.GetCache(), &v1.AddonCatalogue{}, handler.EnqueueRequestsFromMapFunc(r.dependents)),
		source.Kind[client.Object](secrets, &corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.naming)),
	)
	inCluster, inNamespace := handler.EnqueueRequestsFromMapFunc(r.clusterOf), handler.EnqueueRequestsFromMapFunc(r.clustersIn)
	clusters := loop.Register(mgr, "addonset-clusters",
		controller.Options{Reconciler: reconcile.Func(r.reconcileCluster), MaxConcurrentReconciles: r.Options.Concurrency},
		source.Func(r.keepClusters),
		r.Finder.Watch(mgr.GetCache(), cluster.RequestsFor, clusterChanged),
		source.Kind[client.Object](mgr.GetCache(), &v1.AddonInstallation{}, inCluster, r.installationChanged()),
		source.Kind[client.Object](mgr.GetCache(), loop.Metadata(namespaceKind), inNamespace, terminationChanged()),
	)
	return errors.Join(sets, clusters)
}

// keepSets stores the queue of sets, and wakes all sets when the key of the marks changes.
func (r *Reconciler) keepSets(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	r.mutex.Lock()
	r.queues.sets = queue
	r.mutex.Unlock()
	r.Marks.OnChange(func() {
		var copies v1.AddonSetList
		if err := r.Client.List(ctx, &copies, client.InNamespace(r.Options.CatalogueNamespace), client.UnsafeDisableDeepCopy); err != nil {
			return
		}
		for i := range copies.Items {
			queue.Add(requestOf(copies.Items[i].Name))
		}
	})
	return nil
}

func (r *Reconciler) keepClusters(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.queues.clusters = queue
	return nil
}

func requestOf(set string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: set}}
}

// wakeSet enqueues a set, which evaluates its clusters' states. The caller holds the mutex.
func (r *Reconciler) wakeSet(name string) {
	if r.queues.sets != nil {
		r.queues.sets.Add(requestOf(name))
	}
}

// wakeCluster enqueues a cluster. The caller holds the mutex.
func (r *Reconciler) wakeCluster(key cluster.Key) {
	if r.queues.clusters != nil {
		r.queues.clusters.Add(reconcile.Request{NamespacedName: key})
	}
}

// dependents are the sets that depend on a merged catalogue, and those that may mean it by an unknown name.
func (r *Reconciler) dependents(_ context.Context, object client.Object) []reconcile.Request {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var requests []reconcile.Request
	for name, one := range r.sets {
		for addon, entry := range one.offers.entries {
			if addon == object.GetName() || entry == nil && values.IsSlip(addon, object.GetName()) {
				requests = append(requests, requestOf(name))
				break
			}
		}
	}
	return requests
}

// copyChanged ignores the status, which this controller writes.
func (r *Reconciler) copyChanged() predicate.Predicate {
	ours := predicate.NewPredicateFuncs(func(object client.Object) bool {
		return object.GetNamespace() == r.Options.CatalogueNamespace
	})
	return predicate.And(ours, predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld, e.ObjectNew
		return before.GetGeneration() != after.GetGeneration() || !maps.Equal(before.GetAnnotations(), after.GetAnnotations()) ||
			!maps.Equal(before.GetLabels(), after.GetLabels()) || before.GetUID() != after.GetUID() ||
			before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero()
	}})
}

// clusterChanged reports whether a change affects a plan; KKP writes the status all the time.
func clusterChanged(before, after target.Description) bool {
	return before.Namespace != after.Namespace || before.Deleted != after.Deleted || before.Paused != after.Paused ||
		before.KubernetesVersion != after.KubernetesVersion || before.APIServerUp != after.APIServerUp || before.UID != after.UID ||
		before.Waits() != after.Waits() || !slices.Equal(before.Ahead(), after.Ahead()) || !slices.Equal(before.Next(), after.Next()) ||
		!maps.Equal(cluster.Labels(before, ""), cluster.Labels(after, "")) ||
		before.Annotations[v1.AnnotationInitialInstallations] != after.Annotations[v1.AnnotationInitialInstallations] ||
		before.Annotations[v1.AnnotationDeviations] != after.Annotations[v1.AnnotationDeviations]
}

// clusterOf enqueues the cluster of an installation.
func (r *Reconciler) clusterOf(ctx context.Context, object client.Object) []reconcile.Request {
	one, isInstallation := object.(*v1.AddonInstallation)
	if !isInstallation {
		return nil
	}
	return []reconcile.Request{cluster.RequestOf(ctx, r.Finder, one)}
}

// clustersIn enqueues the clusters of a namespace.
func (r *Reconciler) clustersIn(ctx context.Context, namespace client.Object) []reconcile.Request {
	return cluster.RequestsIn(ctx, r.Finder, namespace.GetName())
}

// terminationChanged passes events of namespaces that are created, begin to terminate, or are deleted.
func terminationChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
	}}
}

// installationChanged passes changes that a plan or the state of a cluster depends on. Of installations that no set created, these are
// changes of the installed add-on.
func (r *Reconciler) installationChanged() predicate.Predicate {
	return predicate.Funcs{DeleteFunc: func(e event.DeleteEvent) bool {
		if gone, isInstallation := e.Object.(*v1.AddonInstallation); isInstallation {
			r.mutex.Lock()
			defer r.mutex.Unlock()
			r.caches.observations.forgetGone(gone)
			r.written.Forget(cluster.KeyOf(target.InstalledIn(gone)), gone)
		}
		return true
	}, UpdateFunc: func(e event.UpdateEvent) bool {
		before, isInstallation := e.ObjectOld.(*v1.AddonInstallation)
		after, isInstallationToo := e.ObjectNew.(*v1.AddonInstallation)
		if !isInstallation || !isInstallationToo {
			return true
		}
		r.forgetObservation(before)
		if setOf(before) == "" && setOf(after) == "" {
			return before.Spec.AddonRef.Name != after.Spec.AddonRef.Name || before.UID != after.UID
		}
		return before.Generation != after.Generation || !maps.Equal(before.Labels, after.Labels) ||
			!maps.Equal(before.Annotations, after.Annotations) || before.UID != after.UID ||
			before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() || before.Status.Version != after.Status.Version ||
			!equality.Semantic.DeepEqual(before.Status.LastApplied, after.Status.LastApplied) || readyChanged(before, after)
	}}
}

// forgetObservation drops the sight of an installation that has another state in the cache by now.
func (r *Reconciler) forgetObservation(before *v1.AddonInstallation) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.caches.observations.forget(before)
}

func readyChanged(before, after *v1.AddonInstallation) bool {
	was, is := meta.FindStatusCondition(before.Status.Conditions, v1.ConditionReady),
		meta.FindStatusCondition(after.Status.Conditions, v1.ConditionReady)
	if was == nil || is == nil {
		return was != is
	}
	return *was != *is || before.Status.Cause != after.Status.Cause
}

func isUnknown(err error) bool {
	_, unknown := errors.AsType[*cluster.UnknownError](err)
	return unknown
}
