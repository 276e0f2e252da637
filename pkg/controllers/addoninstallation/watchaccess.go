package addoninstallation

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// watchAccess wakes installations when objects of their agents on the seed change, and when the platform's list for
// agents changes.
func (r *Reconciler) watchAccess(controller *ctrl.Builder) *ctrl.Builder {
	if r.AccessHeld == nil {
		return controller
	}
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return controller.
		WatchesRawSource(madeForAgents(r.AccessHeld, &corev1.ServiceAccount{})).
		WatchesRawSource(madeForAgents(r.AccessHeld, &rbacv1.Role{})).
		WatchesRawSource(madeForAgents(r.AccessHeld, &rbacv1.RoleBinding{})).
		WatchesRawSource(madeForAgents(r.AccessHeld, secret)).
		WatchesRawSource(source.Kind(r.AccessHeld, &rbacv1.ClusterRole{}, handler.TypedEnqueueRequestsFromMapFunc(r.ofListed)))
}

// madeForAgents watches one kind of object created for agents. An agent's writes into its outbox change nothing in the
// cache, and wake no installation.
func madeForAgents[O client.Object](held cache.Cache, kind O) source.Source {
	wake := handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, made O) []reconcile.Request {
		name := made.GetAnnotations()[kubermaticv1.AnnotationAccessOf]
		if name == "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: made.GetNamespace(), Name: name}}}
	})
	return source.Kind(held, kind, wake, predicate.TypedFuncs[O]{UpdateFunc: func(update event.TypedUpdateEvent[O]) bool {
		before := update.ObjectOld.DeepCopyObject().(O)
		before.SetResourceVersion(update.ObjectNew.GetResourceVersion())
		return !equality.Semantic.DeepEqual(before, update.ObjectNew)
	}})
}

// ofListed finds the installations with access, which another list may affect: those with a role, and those that ask
// for one.
func (r *Reconciler) ofListed(ctx context.Context, _ *rbacv1.ClusterRole) (requests []reconcile.Request) {
	all := r.installations(ctx)
	for i := range all {
		if len(all[i].Status.Access) > 0 {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all[i])})
		}
	}
	roles := &rbacv1.RoleList{}
	if err := r.AccessHeld.List(ctx, roles, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the roles of agents; their installations follow with their next reconciliation")
	}
	for i := range roles.Items {
		if name := roles.Items[i].Annotations[kubermaticv1.AnnotationAccessOf]; name != "" {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: roles.Items[i].Namespace, Name: name}})
		}
	}
	return requests
}
