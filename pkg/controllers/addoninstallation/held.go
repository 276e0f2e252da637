package addoninstallation

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/backoff"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
)

// heldRecheck is the interval of checking an installation that finalizers of others hold: its set, or its Cluster, may
// be deleted.
const heldRecheck = 5 * time.Minute

// free removes finalizers of others from an installation that has no work left, if they held the deletion of its set or
// its Cluster for order.HeldAtMost. Without such a deletion they stay.
func (r *Reconciler) free(ctx context.Context, f *facts) (ctrl.Result, error) {
	object := f.installation
	foreign := installation.Foreign(object)
	if len(foreign) == 0 {
		return ctrl.Result{}, nil
	}
	ending, err := r.endingOf(ctx, f)
	if err != nil {
		return ctrl.Result{}, err
	}
	if left := object.DeletionTimestamp.Add(installation.HeldAtMost).Sub(r.Clock.Now()); ending == nil || left > 0 {
		return loop.Result(&loop.Outcome{Kind: loop.Done, Recheck: backoff.Sooner(max(left, 0), heldRecheck)}), nil
	}
	before := object.DeepCopy()
	object.Finalizers = slices.DeleteFunc(object.Finalizers, func(one string) bool { return slices.Contains(foreign, one) })
	if err := r.Client.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	message := fmt.Sprintf("finalizers of other controllers delayed the deletion of installation %q for more than %s and were removed: %s: "+
		"check what these controllers did not clean up", client.ObjectKeyFromObject(object), installation.HeldAtMost, text.Names(foreign, 5))
	r.Recorder.Eventf(ending, object, corev1.EventTypeWarning, kubermaticv1.EventLeftBehind, "Remove", "%s", text.Message(message))
	return ctrl.Result{}, nil
}

// endingOf is the object whose deletion waits for an installation: its Cluster, or the copy of its set, if the set's
// deletion was confirmed. If the Cluster is already gone, it is the installation itself. Nil: none.
func (r *Reconciler) endingOf(ctx context.Context, f *facts) (runtime.Object, error) {
	isKnown := f.cluster.Name != ""
	switch {
	case isKnown && f.cluster.Deleted && f.cluster.Object != nil:
		return f.cluster.Object, nil
	case !isKnown && f.installation.Status.Cluster != nil, isKnown && cluster.GoesWithPrevious(f.cluster.Ref, f.installation):
		return f.installation, nil
	}
	name, set := f.installation.Labels[kubermaticv1.LabelSet], &kubermaticv1.AddonSet{}
	if name == "" {
		return nil, nil
	}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Options.CatalogueNamespace, Name: name}, set); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if set.DeletionTimestamp.IsZero() || set.Annotations[kubermaticv1.AnnotationConfirmDeletion] != name || !r.Marks.BelievesSet(set) {
		return nil, nil
	}
	return set, nil
}
