package addon

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// contestedRecheck is the interval between checks whether a namespace still belongs to several Clusters.
const contestedRecheck = time.Minute

// find gets the Cluster. The creation of a missing one causes an event.
func (r *Reconciler) find(ctx context.Context, f *facts) *loop.Outcome {
	found, err := r.Finder.Find(ctx, f.asked)
	var unknown *cluster.UnknownError
	switch {
	case errors.As(err, &unknown) && !unknown.IsContested():
		return &loop.Outcome{Kind: loop.Done}
	case errors.As(err, &unknown): // several Clusters have the namespace, or the name: none is served
		return waiting(v1.ReasonClusterUnknown, unknown.Error(), contestedRecheck)
	case err != nil:
		return retry(err)
	}
	f.cluster = found
	if !cluster.IsAskedFor(f.asked, found) || !r.handles(found) {
		return &loop.Outcome{Kind: loop.NotMine}
	}
	return r.checkNamespace(ctx, f)
}

// handles says whether this controller works on a Cluster.
func (r *Reconciler) handles(found target.Description) bool {
	return cluster.BelongsTo(found, r.Options.WorkerName) && !found.Paused && !found.Deleted && found.Namespace != ""
}

// checkNamespace waits for the namespace, which is never created here.
func (r *Reconciler) checkNamespace(ctx context.Context, f *facts) *loop.Outcome {
	namespace := loop.Metadata(namespaceKind)
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

var namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")
