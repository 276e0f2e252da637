package distributor

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
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

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// everything is the one request of the distributor: a merge needs all catalogues.
var everything = reconcile.Request{NamespacedName: types.NamespacedName{Name: "everything"}}

// debounce gathers the events of one kubectl apply.
const debounce = 15 * time.Millisecond

// SetupWithManager registers both controllers.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.options.Namespace == r.options.CatalogueNamespace {
		return fmt.Errorf("the catalogue namespace can't be the platform namespace %q: merged and authored catalogues would collide",
			r.options.Namespace)
	}
	r.workers = newWorkers(r.newWorker)
	r.usage.client, r.usage.direct = r.cached, r.direct
	for _, runnable := range []interface{ Start(context.Context) error }{r.workers, r.usage} {
		if err := mgr.Add(runnable); err != nil {
			return fmt.Errorf("adding to the manager: %w", err)
		}
	}
	if err := r.watchInputs(mgr, r.master.GetCache()); err != nil {
		return err
	}
	return r.watchStatus(mgr, r.master.GetCache())
}

func (r *Reconciler) watchInputs(mgr ctrl.Manager, from cache.Cache) error {
	secrets := &metav1.PartialObjectMetadata{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	// Our own status writes change neither.
	edits := predicate.Or[client.Object](
		predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{},
	)
	built, err := controller.New("distributor", mgr, controller.Options{Reconciler: r, MaxConcurrentReconciles: 1})
	if err != nil {
		return fmt.Errorf("making controller distributor: %w", err)
	}
	for _, watch := range []source.Source{
		source.Kind[client.Object](from, &v1.AddonCatalogue{}, toEverything(), edits),
		source.Kind[client.Object](from, &kkpv1.Seed{}, toEverything()),
		source.Kind[client.Object](from, secrets, toEverything()),
	} {
		if err := built.Watch(watch); err != nil {
			return fmt.Errorf("watching for controller distributor: %w", err)
		}
	}
	return nil
}

// toEverything asks for a pass on any event.
func toEverything() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		CreateFunc:  func(_ context.Context, _ event.CreateEvent, q queue) { q.AddAfter(everything, debounce) },
		UpdateFunc:  func(_ context.Context, _ event.UpdateEvent, q queue) { q.AddAfter(everything, debounce) },
		DeleteFunc:  func(_ context.Context, _ event.DeleteEvent, q queue) { q.AddAfter(everything, debounce) },
		GenericFunc: func(_ context.Context, _ event.GenericEvent, q queue) { q.AddAfter(everything, debounce) },
	}
}

func (r *Reconciler) watchStatus(mgr ctrl.Manager, from cache.Cache) error {
	built, err := controller.New("distributor-status", mgr, controller.Options{
		Reconciler: reconcile.Func(r.reconcileStatus), MaxConcurrentReconciles: 2,
	})
	if err != nil {
		return fmt.Errorf("making controller distributor-status: %w", err)
	}
	for _, watch := range []source.Source{
		// Edits of status are put back; edits of the spec come to the board first.
		source.Kind[client.Object](from, &v1.AddonCatalogue{}, &handler.EnqueueRequestForObject{}),
		source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			r.board.attach(queue)
			return nil
		}),
	} {
		if err := built.Watch(watch); err != nil {
			return fmt.Errorf("watching for controller distributor-status: %w", err)
		}
	}
	return nil
}
