package coreaddon

import (
	"context"
	"maps"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// keepSets keeps the queue of sets.
func (r *Reconciler) keepSets(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	r.staging.mutex.Lock()
	defer r.staging.mutex.Unlock()
	r.staging.sets = queue
	return nil
}

func (r *Reconciler) wakeSet() {
	r.staging.mutex.Lock()
	defer r.staging.mutex.Unlock()
	r.staging.wakeSet()
}

// theSet enqueues the one request of the queue of sets.
func theSet() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{requestOfSet}
	})
}

func (r *Reconciler) inCatalogue() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(object client.Object) bool { return object.GetNamespace() == r.Options.CatalogueNamespace })
}

// copyChanged passes copies of type Core on, but not their status, which is our own.
func (r *Reconciler) copyChanged() predicate.Predicate {
	isCore := predicate.NewPredicateFuncs(func(object client.Object) bool {
		of, isSet := object.(*v1.AddonSet)
		return !isSet || of.Spec.Type == v1.AddonSetCore
	})
	return predicate.And(r.inCatalogue(), isCore, predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld, e.ObjectNew
		return before.GetGeneration() != after.GetGeneration() || !maps.Equal(before.GetAnnotations(), after.GetAnnotations()) ||
			!maps.Equal(before.GetLabels(), after.GetLabels()) || before.GetUID() != after.GetUID() ||
			before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero()
	}})
}

// forget what was written of an installation that is gone.
func (s *staging) forget(gone *v1.AddonInstallation) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.written.Forget(gone)
}
