package gitcatalogue

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
)

const reconcilesAtOnce = 4

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	from := r.master.GetCache()
	return loop.Register(mgr, "gitcatalogue", controller.Options{Reconciler: r, MaxConcurrentReconciles: reconcilesAtOnce},
		source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			r.queue = queue
			return nil
		}),
		source.Kind[client.Object](from, &v1.AddonCatalogue{}, handler.EnqueueRequestsFromMapFunc(r.toAuthored), matters()),
		source.Kind[client.Object](from, loop.Metadata(corev1.SchemeGroupVersion.WithKind("Secret")),
			handler.EnqueueRequestsFromMapFunc(r.namingSecret)))
}

// toAuthored maps a generated catalogue to its owner, and any other to itself.
func toAuthored(_ context.Context, object client.Object) []reconcile.Request {
	name := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
	if object.GetLabels()[v1.LabelRole] != "" {
		owner := metav1.GetControllerOf(object)
		if owner == nil {
			return nil
		}
		name.Name = owner.Name
	}
	return []reconcile.Request{{NamespacedName: name}}
}

// matters ignores the distributor's status writes, but not changes to our part.
func matters() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(update event.UpdateEvent) bool {
		before, after := update.ObjectOld.(*v1.AddonCatalogue), update.ObjectNew.(*v1.AddonCatalogue)
		return before.Generation != after.Generation || !maps.Equal(before.Annotations, after.Annotations) ||
			!maps.Equal(before.Labels, after.Labels) || !equality.Semantic.DeepEqual(ownPart(before), ownPart(after))
	}}
}

// ownPart is the part of a status that this controller writes.
func ownPart(object *v1.AddonCatalogue) v1.AddonCatalogueStatus {
	s := object.Status
	part := v1.AddonCatalogueStatus{Revision: s.Revision, Addons: s.Addons, Versions: s.Versions}
	if fetched := meta.FindStatusCondition(s.Conditions, v1.ConditionFetched); fetched != nil {
		part.Conditions = []metav1.Condition{*fetched}
	}
	return part
}

// namingSecret finds the catalogues whose credentials are in a Secret.
func (r *Reconciler) namingSecret(ctx context.Context, secret client.Object) []reconcile.Request {
	var list v1.AddonCatalogueList
	if err := r.cached.List(ctx, &list, client.InNamespace(r.options.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache is starting; every catalogue is enqueued after that
	}
	var requests []reconcile.Request
	for i := range list.Items {
		git := list.Items[i].Spec.Git
		if git == nil {
			continue
		}
		for _, reference := range []*v1.LocalReference{git.SecretRef, git.CASecretRef} {
			if reference != nil && reference.Name == secret.GetName() {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
			}
		}
	}
	return requests
}
