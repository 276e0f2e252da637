package loop

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// Loop is one reconciliation of one object.
type Loop[O client.Object] struct {
	client client.Client
	before O
	object O
	// shared is set when another controller writes the same status.
	shared bool
}

// Start begins a reconciliation. It copies the object as read; Finish patches against the copy. The object must
// belong to the caller, like one from the Get of a cached client.
func Start[O client.Object](c client.Client, object O) *Loop[O] {
	return &Loop[O]{client: c, before: object.DeepCopyObject().(O), object: object}
}

// StartShared is Start for an object whose status has another writer too. The patch has the resourceVersion, since a
// list such as the conditions can only be replaced as a whole. If the other writer was faster, Finish tries again.
func StartShared[O client.Object](c client.Client, object O) *Loop[O] {
	run := Start(c, object)
	run.shared = true
	return run
}

// SetFinalizer sets or removes a finalizer, in a separate patch, if that changes the object. The patch has the
// resourceVersion, since a list can only be replaced as a whole. Removing one from an object that is gone is no
// error. Setting one on it returns the API server's NotFound; then do not begin the work that the finalizer protects.
func (l *Loop[O]) SetFinalizer(ctx context.Context, finalizer string, wanted bool) error {
	change := controllerutil.RemoveFinalizer
	if wanted {
		change = controllerutil.AddFinalizer
	}
	target := l.before.DeepCopyObject().(O)
	if !change(target, finalizer) {
		return nil
	}
	patch := client.MergeFromWithOptions(l.before, client.MergeFromWithOptimisticLock{})
	err := l.client.Patch(ctx, target, patch)
	if apierrors.IsNotFound(err) && !wanted {
		return nil
	}
	if err != nil {
		return fmt.Errorf("patching the finalizers of %q: %w", client.ObjectKeyFromObject(l.object), err)
	}
	for _, object := range []O{l.before, l.object} {
		object.SetFinalizers(target.GetFinalizers())
		object.SetResourceVersion(target.GetResourceVersion())
	}
	return nil
}

// Amend changes the object's metadata and spec in one patch, if that changes the object. The reconciliation continues
// with the changed object. The patch has the resourceVersion, since lists can only be replaced as a whole.
func (l *Loop[O]) Amend(ctx context.Context, change func(O)) error {
	target := l.before.DeepCopyObject().(O)
	change(target)
	if equalities.DeepEqual(l.before, target) {
		return nil
	}
	patch := client.MergeFromWithOptions(l.before, client.MergeFromWithOptimisticLock{})
	if err := l.client.Patch(ctx, target, patch); err != nil {
		return fmt.Errorf("patching %q: %w", client.ObjectKeyFromObject(l.object), err)
	}
	for _, object := range []O{l.before, l.object} {
		change(object)
		object.SetResourceVersion(target.GetResourceVersion())
		object.SetGeneration(target.GetGeneration())
	}
	return nil
}

// Finish writes the object's status if it changed, in one patch, and returns when to reconcile again. It does not
// write a status that does not belong to the controller.
func (l *Loop[O]) Finish(ctx context.Context, outcome *Outcome) (ctrl.Result, error) {
	if outcome.Is(NotMine) {
		return ctrl.Result{}, nil
	}
	err := l.patch(ctx)
	if l.shared && apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: conflictRetry}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return Result(outcome), nil
}

// Result is the result of a reconciliation of an object without a status of ours.
func Result(outcome *Outcome) ctrl.Result {
	return ctrl.Result{RequeueAfter: RequeueAfter(outcome)}
}

// conflictRetry is the time after which the cache has the write of another writer of the same status.
const conflictRetry = 200 * time.Millisecond

func (l *Loop[O]) patch(ctx context.Context) error {
	if equalities.DeepEqual(l.before, l.object) {
		return nil
	}
	patch := client.MergeFrom(l.before)
	if l.shared {
		patch = client.MergeFromWithOptions(l.before, client.MergeFromWithOptimisticLock{})
	}
	err := l.client.Status().Patch(ctx, l.object, patch)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patching the status of %q: %w", client.ObjectKeyFromObject(l.object), err)
	}
	return nil
}
