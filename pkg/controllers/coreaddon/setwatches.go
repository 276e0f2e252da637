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
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// keepSets stores the queue of sets.
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

// copyChanged passes events of copies, except for their status, which this controller writes. Copies of type Custom
// have the name of the seed.
func (r *Reconciler) copyChanged() predicate.Predicate {
	return predicate.And(r.inCatalogue(), predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld, e.ObjectNew
		return before.GetGeneration() != after.GetGeneration() || !maps.Equal(before.GetAnnotations(), after.GetAnnotations()) ||
			!maps.Equal(before.GetLabels(), after.GetLabels()) || before.GetUID() != after.GetUID() ||
			before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero()
	}})
}

// forget drops the stored writes of a deleted installation.
func (s *staging) forget(gone *v1.AddonInstallation) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.written.Forget(cluster.KeyOf(target.InstalledIn(gone)), gone)
}
