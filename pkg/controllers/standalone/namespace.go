package standalone

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
)

// deletedRecheck is the interval between checks whether a namespace is deleted, in case its watch misses it.
const deletedRecheck = 10 * time.Second

// makeNamespace creates the namespace, owned by its Cluster. An existing one is used as it is, but if it is being
// deleted, makeNamespace waits: it has the previous Cluster's objects.
func (r *Reconciler) makeNamespace(ctx context.Context, f *facts) *loop.Outcome {
	have, err := r.namespaceMetadata(ctx, r.Client, f.namespace())
	if err != nil {
		return failure(ctx, err)
	}
	if have != nil && !have.DeletionTimestamp.IsZero() {
		return waiting("the namespace is being deleted", deletedRecheck)
	}
	if have != nil {
		return nil
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: f.namespace(),
		// A Cluster's finalizer waits for its namespace already: to also block its deletion would require a right on the
		// finalizers of Clusters (admission plugin OwnerReferencesPermissionEnforcement).
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: kkpv1.GroupVersion.String(), Kind: "Cluster", Name: f.cluster.Name, UID: f.cluster.UID, Controller: new(true),
		}},
	}}
	if err := r.Client.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return failure(ctx, fmt.Errorf("creating namespace %q: %w", namespace.Name, err))
	}
	return nil
}

// removeNamespace is Done when the API server itself says that the namespace does not exist.
func (r *Reconciler) removeNamespace(ctx context.Context, f *facts) *loop.Outcome {
	r.prober.forget(f.cluster.Name)
	if f.cluster.Status.NamespaceName != f.namespace() { // never created
		return &loop.Outcome{Kind: loop.Done}
	}
	have, err := r.namespaceMetadata(ctx, r.Reader, f.namespace())
	if err != nil {
		return failure(ctx, err)
	}
	if have == nil {
		return &loop.Outcome{Kind: loop.Done}
	}
	if have.DeletionTimestamp.IsZero() {
		err := r.Client.Delete(ctx, have, client.Preconditions{UID: &have.UID})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return failure(ctx, fmt.Errorf("deleting namespace %q: %w", have.Name, err))
		}
	}
	return waiting("the namespace is being deleted", deletedRecheck)
}

// namespaceMetadata is nil if there is no such namespace.
func (r *Reconciler) namespaceMetadata(ctx context.Context, reader client.Reader, name string) (*metav1.PartialObjectMetadata, error) {
	found := loop.Metadata(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := reader.Get(ctx, client.ObjectKey{Name: name}, found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("getting namespace %q: %w", name, err)
	}
	return found, nil
}
