package coreaddon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// SetupWithManager registers the controller. The manager's cache has Clusters, AddonInstallations, namespaces
// (metadata) and the merged catalogues; the custom list and the metadata of available catalogues are in their own
// caches.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	list, err := ownCache(mgr, &corev1.ConfigMap{}, cache.ByObject{
		Field:      fields.OneTermEqualSelector("metadata.name", ListName),
		Namespaces: map[string]cache.Config{r.Options.Namespace: {}},
	})
	if err != nil {
		return fmt.Errorf("creating the cache of the custom core list: %w", err)
	}
	available, err := ownCache(mgr, &v1.AddonCatalogue{}, cluster.HeldAvailable(cache.TransformStripManagedFields()))
	if err != nil {
		return fmt.Errorf("creating the cache of available catalogues: %w", err)
	}
	r.list, r.available = list, available
	namespaces := loop.Metadata(corev1.SchemeGroupVersion.WithKind("Namespace"))
	sets := loop.Register(mgr, "coreaddon-set", controller.Options{Reconciler: reconcile.Func(r.reconcileSet), MaxConcurrentReconciles: 1},
		source.Func(r.keepSets),
		source.Kind[client.Object](mgr.GetCache(), &v1.AddonSet{}, theSet(), r.copyChanged()),
		source.Kind[client.Object](mgr.GetCache(), &v1.AddonCatalogue{}, theSet(), r.inCatalogue()),
		source.Kind[client.Object](list, &corev1.ConfigMap{}, theSet()),
	)
	inCluster, inNamespace := handler.EnqueueRequestsFromMapFunc(r.clusterOf), handler.EnqueueRequestsFromMapFunc(r.clustersIn)
	clusters := loop.Register(mgr, "coreaddon", controller.Options{Reconciler: r, MaxConcurrentReconciles: r.Options.Concurrency},
		source.Func(r.watchMarks),
		r.Finder.Watch(mgr.GetCache(), cluster.RequestsFor, r.clusterChanged),
		source.Kind[client.Object](mgr.GetCache(), &v1.AddonInstallation{}, inCluster, r.installationChanged()),
		source.Kind[client.Object](mgr.GetCache(), namespaces, inNamespace, terminationChanged()),
		source.Kind[client.Object](mgr.GetCache(), &v1.AddonCatalogue{}, handler.EnqueueRequestsFromMapFunc(r.allClusters), r.concerns()),
		source.Kind[client.Object](list, &corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.allClusters)),
		source.Kind[client.Object](available, loop.Metadata(catalogueKind), handler.EnqueueRequestsFromMapFunc(r.offeredTo), comesOrGoes()),
	)
	return errors.Join(sets, clusters)
}

// watchMarks enqueues all clusters when the key of the marks changes.
func (r *Reconciler) watchMarks(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	r.staging.mutex.Lock()
	r.staging.clusters = queue
	r.staging.mutex.Unlock()
	r.Marks.OnChange(func() {
		r.wakeSet()
		for _, request := range r.allClusters(ctx, nil) {
			queue.Add(request)
		}
	})
	return nil
}

// ownCache caches one kind under its own restrictions.
func ownCache(mgr manager.Manager, kind client.Object, held cache.ByObject) (cache.Cache, error) {
	made, err := loop.Cache(mgr, map[client.Object]cache.ByObject{kind: held})
	if err != nil {
		return nil, err
	}
	return made, mgr.Add(made)
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

// offeredTo enqueues the cluster of an available catalogue.
func (r *Reconciler) offeredTo(ctx context.Context, available client.Object) []reconcile.Request {
	return cluster.RequestsOfAvailable(ctx, r.Finder, available)
}

// allClusters enqueues all clusters.
func (r *Reconciler) allClusters(ctx context.Context, _ client.Object) []reconcile.Request {
	clusters, err := r.Finder.List(ctx)
	if err != nil {
		log.FromContext(ctx).Error(err, "listing clusters to reconcile")
		return nil
	}
	var requests []reconcile.Request
	for i := range clusters {
		requests = append(requests, cluster.RequestsFor(ctx, clusters[i])...)
	}
	return requests
}

// clusterChanged reports whether a change affects the set; KKP writes the status all the time.
func (r *Reconciler) clusterChanged(before, after target.Description) bool {
	if before.KubernetesVersion != after.KubernetesVersion || r.staging.isActive() && (before.APIServerUp != after.APIServerUp ||
		before.Waits() != after.Waits() || !slices.Equal(before.Next(), after.Next())) {
		return true
	}
	return before.Namespace != after.Namespace || before.Deleted != after.Deleted || before.Paused != after.Paused ||
		!maps.Equal(before.Labels, after.Labels) || rulesConcern(before, after)
}

// installationChanged passes changes that a reconciliation reads: of a status, those of its version and of
// conditions Ready and Compatible; of a foreign installation, only its creation and deletion, if it has the name of a core add-on's. A
// list that names another add-on enqueues all clusters.
func (r *Reconciler) installationChanged() predicate.Predicate {
	comes := func(object client.Object) bool {
		one, isInstallation := object.(*v1.AddonInstallation)
		return !isInstallation || !isForeign(one) || r.interestsIn(one) || r.mayGate(one)
	}
	return predicate.Funcs{CreateFunc: func(e event.CreateEvent) bool {
		return comes(e.Object)
	}, DeleteFunc: func(e event.DeleteEvent) bool {
		if gone, isInstallation := e.Object.(*v1.AddonInstallation); isInstallation {
			r.staging.forget(gone)
		}
		return comes(e.Object)
	}, UpdateFunc: r.isUpdated}
}

// isUpdated reports whether an update changes something that a reconciliation reads.
func (r *Reconciler) isUpdated(e event.UpdateEvent) bool {
	before, isInstallation := e.ObjectOld.(*v1.AddonInstallation)
	after, isInstallationToo := e.ObjectNew.(*v1.AddonInstallation)
	if !isInstallation || !isInstallationToo {
		return true
	}
	if isForeign(before) && isForeign(after) {
		return r.gateChanged(before, after)
	}
	if r.staging.isActive() && !equality.Semantic.DeepEqual(before.Status, after.Status) {
		return true
	}
	return before.Generation != after.Generation || !equality.Semantic.DeepEqual(before.Labels, after.Labels) ||
		!equality.Semantic.DeepEqual(before.Annotations, after.Annotations) ||
		!equality.Semantic.DeepEqual(before.Finalizers, after.Finalizers) ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() || madeFor(before) != madeFor(after) ||
		before.Status.Version != after.Status.Version || conditionChanged(before, after, v1.ConditionReady) ||
		conditionChanged(before, after, v1.ConditionCompatible)
}

func conditionChanged(before, after *v1.AddonInstallation, kind string) bool {
	was, is := meta.FindStatusCondition(before.Status.Conditions, kind), meta.FindStatusCondition(after.Status.Conditions, kind)
	if was == nil || is == nil {
		return was != is
	}
	return was.Status != is.Status || was.Reason != is.Reason || was.ObservedGeneration != is.ObservedGeneration
}

// terminationChanged passes events of namespaces that are created, begin to terminate, or are deleted.
func terminationChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
	}}
}

// comesOrGoes ignores updates: they come from this controller and the addon controller.
func comesOrGoes() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
}

// interests reports whether a rule or the list in force has this name for an add-on or its installation.
func (r *Reconciler) interests(name string) bool {
	listed := r.interesting.Load()
	return isRuled(name) || listed != nil && (*listed)[name]
}

// interestsIn reports whether an installation has, or may have, the name of a core add-on's in its cluster: a
// shortened name does not show its item.
func (r *Reconciler) interestsIn(one *v1.AddonInstallation) bool {
	item, isItem := one.Name, true
	if asked := target.InstalledIn(one); asked.Name != "" {
		asked.Kind = target.KindClusterAPI
		item, isItem = asked.ItemOf(one.Name)
	}
	return !isItem || r.interests(item) || r.interests(one.Name)
}

// concerns passes merged catalogues of required add-ons that are created, deleted or change type, and those that have
// a slot, or change it: AddonsReady may wait for an installation of them that a set created.
func (r *Reconciler) concerns() predicate.Predicate {
	isAbout := func(object client.Object) bool {
		one, _ := object.(*v1.AddonCatalogue)
		return object.GetNamespace() == r.Options.CatalogueNamespace && (r.interests(object.GetName()) || slotOf(one) != "")
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return isAbout(e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return isAbout(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, isCatalogue := e.ObjectOld.(*v1.AddonCatalogue)
			after, isCatalogueToo := e.ObjectNew.(*v1.AddonCatalogue)
			if !isAbout(e.ObjectOld) && !isAbout(e.ObjectNew) {
				return false
			}
			return !isCatalogue || !isCatalogueToo || before.Spec.Type != after.Spec.Type || slotOf(before) != slotOf(after) ||
				r.Marks.Believes(before) != r.Marks.Believes(after)
		},
	}
}
