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
	"github.com/trellis-addons/trellis/pkg/base/budget"
	"github.com/trellis-addons/trellis/pkg/base/fairqueue"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
	"github.com/trellis-addons/trellis/pkg/install/revision"
)

// indexAddon finds the installations of an add-on, indexRelease those with a Helm release of a name, indexDependsOn the
// dependents of one. indexSlot finds the catalogues whose add-on has a slot.
const (
	indexAddon     = "spec.addonRef.name"
	indexRelease   = "status.release.name"
	indexDependsOn = "spec.dependsOn"
	indexSlot      = "spec.addons.slot"
	// hasSlot is the only value of indexSlot.
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
			builder.WithPredicates(changed(installation.OrderStateOf))).
		Watches(&kubermaticv1.AddonCatalogue{}, handler.EnqueueRequestsFromMapFunc(r.ofCatalogue)).
		WatchesRawSource(r.Finder.Watch(manager.GetCache(), r.ofCluster, nil)).
		WatchesRawSource(marked(r.Marked, &corev1.Secret{}, ofMarked[*corev1.Secret](r))).
		WatchesRawSource(marked(r.Marked, &corev1.ConfigMap{}, ofMarked[*corev1.ConfigMap](r))).
		WatchesRawSource(source.Func(r.watchMarks)).
		WatchesRawSource(source.Func(r.watchPlatform)).
		WatchesRawSource(source.Func(r.watchSwaps)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: max(r.Options.Limits.Workers, 1), NewQueue: r.newQueue, RateLimiter: loop.ErrorWaits(),
		})
	return r.watchAccess(controlled).Complete(loop.Traced("addoninstallation", r))
}

// marked watches one kind in the cache of marked objects.
func marked[O client.Object](objects cache.Cache, kind O, requests handler.TypedMapFunc[O, reconcile.Request]) source.Source {
	return source.Kind(objects, kind, handler.TypedEnqueueRequestsFromMapFunc(requests))
}

// newQueue creates the controller's queue; background work wakes installations through it.
func (r *Reconciler) newQueue(
	name string, limiter workqueue.TypedRateLimiter[reconcile.Request],
) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	r.queue = fairqueue.New(fairqueue.Options[reconcile.Request]{
		Name: name, Limits: r.Options.Limits, RateLimiter: limiter, Metrics: r.QueueMetrics,
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

// waker returns a function that enqueues the installation. It is nil for a preview, which has no queue: its caller asks again.
func (r *Reconciler) waker(installation *kubermaticv1.AddonInstallation) func() {
	if r.queue == nil {
		return nil
	}
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(installation)}
	return func() { r.queue.Add(request) }
}

// installationChanged leaves out our own status writes. Finalizers change no generation, but a core add-on that loses
// its protection during its deletion has to be removed.
func installationChanged() predicate.Predicate {
	return predicate.Or(
		predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{},
		changed(isProtected), changed(isStub))
}

// siblingChanged lets changes through that matter to other installations of the add-on, which may share objects with
// it.
func siblingChanged() predicate.Predicate {
	counts := changed(fingerprintOf)
	counts.CreateFunc = func(event.CreateEvent) bool { return false }
	counts.GenericFunc = func(event.GenericEvent) bool { return false }
	return counts
}

// changed lets updates through that change the result of read.
func changed[T comparable](read func(*kubermaticv1.AddonInstallation) T) predicate.Funcs {
	return predicate.Funcs{UpdateFunc: func(update event.UpdateEvent) bool {
		before, one := update.ObjectOld.(*kubermaticv1.AddonInstallation)
		after, other := update.ObjectNew.(*kubermaticv1.AddonInstallation)
		return one && other && read(before) != read(after)
	}}
}

// ofSibling are the requests for installations that depend on others of the same add-on.
func (r *Reconciler) ofSibling(_ context.Context, object client.Object) []reconcile.Request {
	changed, ok := object.(*kubermaticv1.AddonInstallation)
	if !ok {
		return nil
	}
	return r.dependents.of(changed)
}

// ofAwaited are the requests for those that wait for a created, deleted or changed installation.
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

// ofMarked are the requests for installations that read a Secret or ConfigMap: by valuesFrom in its namespace, all with
// a source if it is a source Secret, or all if it is the pull Secret.
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

// installations lists those in the cache, which shares the objects: do not change them.
func (r *Reconciler) installations(ctx context.Context, options ...client.ListOption) []kubermaticv1.AddonInstallation {
	list := &kubermaticv1.AddonInstallationList{}
	if err := r.Client.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing installations to reconcile")
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

// isRemoved says whether an installation has to be removed. A core add-on that a user deletes is kept while the core
// add-on controller protects it.
func isRemoved(object *kubermaticv1.AddonInstallation) bool {
	return installation.IsRemoved(object)
}

func isStub(object *kubermaticv1.AddonInstallation) bool { return budget.IsStub(object) }

func isProtected(object *kubermaticv1.AddonInstallation) bool {
	return installation.IsProtected(object)
}

// dependents has the installations that depend on others of their add-on: those that use objects of others, those that
// are not applied, perhaps because of others, and those that are being removed. The others are not woken, since with
// hundreds of instances each change would wake all. An installation that this process has not reconciled yet has its
// first reconciliation ahead.
type dependents struct {
	mutex sync.Mutex
	// byNamespace has them by name.
	byNamespace map[string]map[string]dependent
}

// dependent is an installation's add-on and cluster.
type dependent struct {
	cluster target.Ref
	addon   kubermaticv1.AddonName
}

// note records after a reconciliation whether its installation, with that record, is one of them.
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

// of are the requests for dependents of the same add-on and cluster as a changed installation, without itself.
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

// forget drops an installation that is gone, or no longer depends on others.
func (d *dependents) forget(name types.NamespacedName) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	delete(d.byNamespace[name.Namespace], name.Name)
	if len(d.byNamespace[name.Namespace]) == 0 {
		delete(d.byNamespace, name.Namespace)
	}
}
