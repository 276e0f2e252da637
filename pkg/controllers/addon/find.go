package addon

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/cluster"
)

// find gets the Cluster and sees whether there is something to do. Whatever is missing here comes with an event.
func (r *Reconciler) find(ctx context.Context, f *facts) (done bool, err error) {
	found := &kkpv1.Cluster{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: f.name}, found); err != nil {
		return true, client.IgnoreNotFound(err)
	}
	f.cluster, f.namespace = found, found.Status.NamespaceName
	if !r.handles(found) {
		return true, nil
	}
	usable, err := r.isUsable(ctx, f.namespace)
	if err != nil || !usable {
		return true, err
	}
	return r.isContested(ctx, f)
}

// handles says whether a Cluster is to be worked on.
func (r *Reconciler) handles(found *kkpv1.Cluster) bool {
	return cluster.BelongsTo(found, r.Options.WorkerName) && !found.Spec.Pause && !cluster.Deleted(found) &&
		found.Status.NamespaceName != ""
}

// isUsable says whether a namespace exists and is not going. It is never created here.
func (r *Reconciler) isUsable(ctx context.Context, name string) (bool, error) {
	namespace := namespaceMetadata()
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return namespace.DeletionTimestamp.IsZero(), nil
}

// isContested says whether another Cluster claims the namespace too: then neither gets anything.
func (r *Reconciler) isContested(ctx context.Context, f *facts) (bool, error) {
	_, err := r.Finder.InNamespace(ctx, f.namespace)
	if unknown, ok := errors.AsType[*cluster.UnknownError](err); ok {
		log.FromContext(ctx).Info("namespace is not one Cluster's", "namespace", f.namespace, "clusters", unknown.Clusters)
		return true, nil
	}
	if err != nil {
		return true, fmt.Errorf("finding the Cluster of namespace %q: %w", f.namespace, err)
	}
	return false, nil
}

func namespaceMetadata() *metav1.PartialObjectMetadata {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return namespace
}

// decide takes what was decided for clusters like this one. Before the first look at the catalogues nothing is.
func (r *Reconciler) decide(_ context.Context, f *facts) (done bool, err error) {
	f.offer, err = r.offers.to(f.cluster.Status.Versions.ControlPlane)
	return f.offer == nil, err
}

// platformOf is what the constraints of add-ons are compared with.
func platformOf(kkpVersion, k8sVersion string, preReleases bool) catalogue.Platform {
	return catalogue.Platform{KKPVersion: kkpVersion, K8sVersion: k8sVersion, AllowPrereleases: preReleases}
}
