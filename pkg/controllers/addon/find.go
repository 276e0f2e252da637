package addon

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/target"
)

// contestedRecheck is when to look again whether a namespace still belongs to several Clusters, besides their events.
const contestedRecheck = time.Minute

// find gets the Cluster and sees whether there is something to do. Whatever is missing here comes with an event.
func (r *Reconciler) find(ctx context.Context, f *facts) loop.Outcome {
	found, err := r.Finder.Find(ctx, f.asked)
	var unknown *cluster.UnknownError
	switch {
	case errors.As(err, &unknown) && len(unknown.Clusters) == 0:
		return loop.Done{}
	case errors.As(err, &unknown): // Then none of them gets anything.
		return waiting(v1.ReasonClusterUnknown, unknown.Error(), contestedRecheck)
	case err != nil:
		return retry(err)
	}
	f.cluster = found
	if !r.handles(found) {
		return loop.NotMine{}
	}
	return r.seeNamespace(ctx, f)
}

// handles says whether a Cluster is to be worked on.
func (r *Reconciler) handles(found target.Description) bool {
	return cluster.BelongsTo(found, r.Options.WorkerName) && !found.Paused && !found.Deleted && found.Namespace != ""
}

// seeNamespace goes on where the namespace exists and is not going. It is never created here.
func (r *Reconciler) seeNamespace(ctx context.Context, f *facts) loop.Outcome {
	namespace := namespaceMetadata()
	err := r.Client.Get(ctx, client.ObjectKey{Name: f.asked.Namespace}, namespace)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return retry(fmt.Errorf("getting namespace %q: %w", f.asked.Namespace, err))
	case err != nil:
		return waiting(v1.ReasonClusterNotReady, fmt.Sprintf("there is no namespace %q yet", f.asked.Namespace), 0)
	case !namespace.DeletionTimestamp.IsZero():
		return waiting(v1.ReasonClusterNotReady, fmt.Sprintf("namespace %q is being deleted", f.asked.Namespace), 0)
	}
	return nil
}

func namespaceMetadata() *metav1.PartialObjectMetadata {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return namespace
}
