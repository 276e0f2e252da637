package addoninstallation

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/budget"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/fairqueue"
	order "github.com/trellis-addons/trellis/pkg/installation"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/revision"
	"github.com/trellis-addons/trellis/pkg/target"
)

// indexAddon finds the installations of an add-on, indexRelease those that have a Helm release of a
// name, indexDependsOn those that depend on one. indexSlot finds the catalogues whose add-on has a
// slot.
const (
	indexAddon     = "spec.addonRef.name"
	indexRelease   = "status.release.name"
	indexDependsOn = "spec.dependsOn"
	indexSlot      = "spec.addons.slot"
	// hasSlot is the one value of indexSlot.
	hasSlot = "true"
)

var indexes = map[string]func(*kubermaticv1.AddonInstallation) []string{
	indexAddon: func(installation *kubermaticv1.AddonInstallation) []string {
		return []string{string(installation.Spec.AddonRef.Name)}
	},
	indexRelease: func(installation *kubermaticv1.AddonInstallation) []string {
		if has := installation.Status.Release; has != nil {
			return []string{has.Name}
		}
		return nil
	},
	indexDependsOn: func(installation *kubermaticv1.AddonInstallation) (names []string) {
		for _, name := range installation.Spec.DependsOn {
			names = append(names, string(name))
		}
		return names
	},
}

func addIndexes(indexer client.FieldIndexer) error {
	for field, values := range indexes {
		err := indexer.IndexField(context.Background(), &kubermaticv1.AddonInstallation{}, field,
			func(object client.Object) []string { return values(object.(*kubermaticv1.AddonInstallation)) })
		if err != nil {
			return err
		}
	}
	return indexer.IndexField(context.Background(), &kubermaticv1.AddonCatalogue{}, indexSlot, func(object client.Object) []string {
		if slotOf(object.(*kubermaticv1.AddonCatalogue)) == "" {
			return nil
		}
		return []string{hasSlot}
	})
}

// SetupWithManager registers the controller with its watches and indexes.
func (r *Reconciler) SetupWithManager(manager ctrl.Manager) error {
	if err := addIndexes(manager.GetFieldIndexer()); err != nil {
		return err
	}
	controlled := ctrl.NewControllerManagedBy(manager).
		Named("addoninstallation").
		For(&kubermaticv1.AddonInstallation{}, builder.WithPredicates(r.clusters.heard(), installationChanged())).
		Watches(&kubermaticv1.AddonInstallation{}, handler.EnqueueRequestsFromMapFunc(r.ofSibling), builder.WithPredicates(siblingChanged())).
		Watches(&kubermaticv1.AddonInstallation{}, handler.EnqueueRequestsFromMapFunc(r.ofAwaited),
			builder.WithPredicates(changed(order.StandOf))).
		Watches(&kubermaticv1.AddonCatalogue{}, handler.EnqueueRequestsFromMapFunc(r.ofCatalogue)).
		WatchesRawSource(r.Finder.Watch(manager.GetCache(), r.ofCluster, nil)).
		WatchesRawSource(marked(r.Marked, &corev1.Secret{}, ofMarked[*corev1.Secret](r))).
		WatchesRawSource(marked(r.Marked, &corev1.ConfigMap{}, ofMarked[*corev1.ConfigMap](r))).
		WatchesRawSource(source.Func(r.watchMarks)).
		WatchesRawSource(source.Func(r.watchPlatform)).
		WatchesRawSource(source.Func(r.watchSwaps)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: max(r.Options.Passes.Workers, 1), NewQueue: r.newQueue, RateLimiter: loop.ErrorWaits(),
		})
	return r.watchAccess(controlled).Complete(loop.Traced("addoninstallation", r))
}

// marked watches one kind in the cache of marked objects.
func marked[O client.Object](objects cache.Cache, kind O, requests handler.TypedMapFunc[O, reconcile.Request]) source.Source {
	return source.Kind(objects, kind, handler.TypedEnqueueRequestsFromMapFunc(requests))
}

// newQueue makes the controller's queue; what works in the background wakes installations by it.
func (r *Reconciler) newQueue(
	name string, limiter workqueue.TypedRateLimiter[reconcile.Request],
) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	r.queue = fairqueue.New(fairqueue.Options[reconcile.Request]{
		Name: name, Limits: r.Options.Passes, RateLimiter: limiter, Metrics: r.QueueMetrics,
		Cluster: func(request reconcile.Request) fairqueue.Cluster { return r.clusters.of(request.NamespacedName) },
		Logger:  ctrl.Log.WithName(name), Clock: r.Clock,
	})
	return r.queue
}

// watchMarks wakes all installations when the key of merged catalogues changes.
func (r *Reconciler) watchMarks(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	r.Marks.OnChange(func() {
		for _, request := range r.requests(ctx) {
			queue.Add(request)
		}
	})
	return nil
}

// waker returns what enqueues the installation.
func (r *Reconciler) waker(installation *kubermaticv1.AddonInstallation) func() {
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(installation)}
	return func() { r.queue.Add(request) }
}

// installationChanged leaves out our own status writes. Finalizers change no generation, and a core
// add-on that loses its protection while it is being deleted is to be removed.
func installationChanged() predicate.Predicate {
	return predicate.Or(
		predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{},
		changed(isProtected), changed(isStub))
}

// siblingChanged is what counts for the other installations of the add-on, which may share objects
// with it.
func siblingChanged() predicate.Predicate {
	counts := changed(fingerprintOf)
	counts.CreateFunc = func(event.CreateEvent) bool { return false }
	counts.GenericFunc = func(event.GenericEvent) bool { return false }
	return counts
}

// changed passes updates on that change what is read of an installation.
func changed[T comparable](read func(*kubermaticv1.AddonInstallation) T) predicate.Funcs {
	return predicate.Funcs{UpdateFunc: func(update event.UpdateEvent) bool {
		before, one := update.ObjectOld.(*kubermaticv1.AddonInstallation)
		after, other := update.ObjectNew.(*kubermaticv1.AddonInstallation)
		return one && other && read(before) != read(after)
	}}
}

// ofSibling wakes those that go by what the other installations of the add-on do.
func (r *Reconciler) ofSibling(_ context.Context, object client.Object) []reconcile.Request {
	changed, ok := object.(*kubermaticv1.AddonInstallation)
	if !ok {
		return nil
	}
	return r.dependents.of(changed)
}

// ofAwaited wakes those that wait for an installation: one that came, went, or stands otherwise.
func (r *Reconciler) ofAwaited(_ context.Context, object client.Object) []reconcile.Request {
	changed, ok := object.(*kubermaticv1.AddonInstallation)
	if !ok {
		return nil
	}
	return r.awaiting.of(changed)
}

func (r *Reconciler) ofCatalogue(ctx context.Context, object client.Object) []reconcile.Request {
	if object.GetNamespace() != r.Options.CatalogueNamespace {
		return nil
	}
	having := r.installations(ctx, client.MatchingFields{indexAddon: object.GetName()})
	requests := requestsFor(having)
	for i := range having { // it may have another slot
		requests = append(requests, r.awaiting.of(&having[i])...)
	}
	return requests
}

func (r *Reconciler) ofCluster(ctx context.Context, found target.Description) []reconcile.Request {
	if found.Namespace == "" {
		return nil
	}
	return r.requestsOf(ctx, found.Ref)
}

// ofMarked finds the installations that read a Secret or ConfigMap: by valuesFrom in its own
// namespace, or all with a source, if it is a source Secret, or all if it is the pull Secret.
func ofMarked[O client.Object](r *Reconciler) handler.TypedMapFunc[O, reconcile.Request] {
	return func(ctx context.Context, object O) []reconcile.Request {
		if r.installer.Pull.Is(object) {
			return r.requests(ctx)
		}
		if object.GetLabels()[kubermaticv1.LabelUse] != kubermaticv1.UseSource {
			references := r.references()
			var requests []reconcile.Request
			for _, installation := range r.installations(ctx, cluster.InstallationsOf(target.Ref{Namespace: object.GetNamespace()})) {
				if references.Reads(ctx, &installation, object) {
					requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&installation)})
				}
			}
			if object.GetNamespace() == r.Options.CatalogueNamespace {
				requests = append(requests, r.ofPlatformValues(ctx, object.GetName())...)
			}
			return requests
		}
		if object.GetNamespace() != r.Options.CatalogueNamespace {
			return nil
		}
		return r.requests(ctx)
	}
}

// installations lists those in the cache, which shares the objects: they must not be changed.
func (r *Reconciler) installations(ctx context.Context, options ...client.ListOption) []kubermaticv1.AddonInstallation {
	list := &kubermaticv1.AddonInstallationList{}
	if err := r.Client.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing installations to wake")
		return nil
	}
	return list.Items
}

func (r *Reconciler) requests(ctx context.Context, options ...client.ListOption) []reconcile.Request {
	return requestsFor(r.installations(ctx, options...))
}

// requestsOf are for the installations of one cluster.
func (r *Reconciler) requestsOf(ctx context.Context, ref target.Ref, options ...client.ListOption) []reconcile.Request {
	return requestsFor(cluster.OnlyOf(ref, r.installations(ctx, append(options, cluster.InstallationsOf(ref))...)))
}

func requestsFor(installations []kubermaticv1.AddonInstallation) []reconcile.Request {
	requests := make([]reconcile.Request, len(installations))
	for i := range installations {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&installations[i])
	}
	return requests
}

// isRemoved says whether an installation is to go. A core add-on that somebody deletes lives on
// while it is protected, by the core add-on controller.
func isRemoved(installation *kubermaticv1.AddonInstallation) bool {
	return order.IsRemoved(installation)
}

func isStub(installation *kubermaticv1.AddonInstallation) bool { return budget.IsStub(installation) }

func isProtected(installation *kubermaticv1.AddonInstallation) bool {
	return order.IsProtected(installation)
}

// dependents knows the installations that go by what others of their add-on do: those that use
// objects of others, those that are not applied, maybe for what others have, and those that are
// being removed. All the rest need not be woken: with hundreds of instances each would be, for each
// of the others. What this process has not seen yet has its first pass before it.
type dependents struct {
	mutex sync.Mutex
	// byNamespace has them by name.
	byNamespace map[string]map[string]dependent
}

// dependent is what an installation asks for, and in which cluster.
type dependent struct {
	cluster target.Ref
	addon   kubermaticv1.AddonName
}

// note says after a pass whether its installation, with that record, is one of them.
func (d *dependents) note(of target.Ref, installation *kubermaticv1.AddonInstallation, record *revision.Record) {
	depends := record != nil && len(record.Shared) > 0 || isRemoved(installation) ||
		!meta.IsStatusConditionTrue(installation.Status.Conditions, kubermaticv1.ConditionApplied)
	if !depends {
		d.forget(client.ObjectKeyFromObject(installation))
		return
	}
	namespace := installation.Namespace
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.byNamespace == nil {
		d.byNamespace = map[string]map[string]dependent{}
	}
	if d.byNamespace[namespace] == nil {
		d.byNamespace[namespace] = map[string]dependent{}
	}
	d.byNamespace[namespace][installation.Name] = dependent{of, installation.Spec.AddonRef.Name}
}

// of are the dependents of the same add-on in the same cluster as one that changed, without itself.
func (d *dependents) of(changed *kubermaticv1.AddonInstallation) (requests []reconcile.Request) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	for name, one := range d.byNamespace[changed.Namespace] {
		if one.addon == changed.Spec.AddonRef.Name && name != changed.Name && one.cluster.Has(changed) {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: changed.Namespace, Name: name}})
		}
	}
	return requests
}

// forget drops an installation that is gone, or does not depend on others any more.
func (d *dependents) forget(name types.NamespacedName) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	delete(d.byNamespace[name.Namespace], name.Name)
	if len(d.byNamespace[name.Namespace]) == 0 {
		delete(d.byNamespace, name.Namespace)
	}
}
