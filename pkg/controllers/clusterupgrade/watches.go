package clusterupgrade

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
)

// SetupWithManager registers the controller. The manager's cache has AddonInstallations, the merged catalogues and
// the copies of sets; the metadata of available catalogues is in its own cache.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	available, err := loop.Cache(mgr, map[client.Object]cache.ByObject{
		&v1.AddonCatalogue{}: cluster.HeldAvailable(cache.TransformStripManagedFields()),
	})
	if err != nil {
		return fmt.Errorf("creating the cache of available catalogues: %w", err)
	}
	if err := mgr.Add(available); err != nil {
		return fmt.Errorf("adding the cache of available catalogues: %w", err)
	}
	return loop.Register(mgr, "clusterupgrade", controller.Options{Reconciler: r, MaxConcurrentReconciles: r.Options.Concurrency},
		r.Finder.Watch(mgr.GetCache(), requestsOf, matters),
		source.Kind[client.Object](mgr.GetCache(), &v1.AddonInstallation{}, handler.EnqueueRequestsFromMapFunc(r.ofInstallation), gateChanged()),
		source.Kind[client.Object](mgr.GetCache(), &v1.AddonCatalogue{}, handler.EnqueueRequestsFromMapFunc(r.ofAll), offersGates()),
		source.Kind[client.Object](mgr.GetCache(), &v1.AddonSet{}, handler.EnqueueRequestsFromMapFunc(r.ofAll),
			predicate.GenerationChangedPredicate{}),
		source.Kind[client.Object](available, loop.Metadata(v1.GroupVersion.WithKind("AddonCatalogue")),
			handler.EnqueueRequestsFromMapFunc(r.ofAvailable), comesOrGoes()),
	)
}

// requestsOf are the requests for Clusters of Cluster API only.
func requestsOf(ctx context.Context, changed target.Description) []reconcile.Request {
	if changed.Kind != target.KindClusterAPI {
		return nil
	}
	return cluster.RequestsFor(ctx, changed)
}

// matters says whether a change of a Cluster counts.
func matters(before, after target.Description) bool {
	return before.Ref != after.Ref || before.Paused != after.Paused || before.Deleted != after.Deleted ||
		before.KubernetesVersion != after.KubernetesVersion || !equality.Semantic.DeepEqual(before.Upgrade, after.Upgrade) ||
		before.Annotations[v1.AnnotationUpgradeHold] != after.Annotations[v1.AnnotationUpgradeHold] ||
		!maps.Equal(before.Labels, after.Labels)
}

// ofInstallation enqueues the Cluster of an installation.
func (r *Reconciler) ofInstallation(ctx context.Context, object client.Object) []reconcile.Request {
	one, isInstallation := object.(*v1.AddonInstallation)
	if !isInstallation || one.Spec.ClusterName == "" {
		return nil
	}
	return []reconcile.Request{cluster.Request(target.Ref{
		Kind: target.KindClusterAPI, Namespace: one.Namespace, Name: one.Spec.ClusterName,
	})}
}

// ofAvailable enqueues the Cluster of an available catalogue.
func (r *Reconciler) ofAvailable(ctx context.Context, object client.Object) []reconcile.Request {
	return cluster.RequestsOfAvailable(ctx, r.Finder, object)
}

// comesOrGoes ignores updates.
func comesOrGoes() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
}

// ofAll enqueues all Clusters of Cluster API.
func (r *Reconciler) ofAll(ctx context.Context, _ client.Object) (requests []reconcile.Request) {
	clusters, err := r.Finder.List(ctx)
	if err != nil {
		log.FromContext(ctx).Error(err, "listing clusters to reconcile")
		return nil
	}
	for i := range clusters {
		requests = append(requests, requestsOf(ctx, clusters[i])...)
	}
	return requests
}

// offersGates passes catalogues with an add-on that has a slot: upgrades wait for no other.
func offersGates() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return hasSlot(e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return hasSlot(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return hasSlot(e.ObjectOld) || hasSlot(e.ObjectNew) },
	}
}

func hasSlot(object client.Object) bool {
	one, isCatalogue := object.(*v1.AddonCatalogue)
	return isCatalogue && slices.ContainsFunc(one.Spec.Addons, func(addon v1.Addon) bool { return addon.Slot != "" })
}

// gateChanged passes changes of installations that a reconciliation reads.
func gateChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return isMade(e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return isMade(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, is := e.ObjectOld.(*v1.AddonInstallation)
			after, isToo := e.ObjectNew.(*v1.AddonInstallation)
			return is && isToo && (isMade(before) || isMade(after)) && (before.Generation != after.Generation ||
				installation.MayGate(before) != installation.MayGate(after) || before.Status.Version != after.Status.Version ||
				!equality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions) ||
				!equality.Semantic.DeepEqual(before.Status.LastApplied, after.Status.LastApplied))
		},
	}
}

// isMade says whether the platform made an installation.
func isMade(object client.Object) bool {
	one, isInstallation := object.(*v1.AddonInstallation)
	return isInstallation && (one.Spec.CoreAddon || one.Labels[v1.LabelSet] != "")
}
