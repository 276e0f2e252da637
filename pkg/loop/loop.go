package loop

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Loop is one pass over one object.
type Loop[O client.Object] struct {
	client client.Client
	before O
	object O
}

// Start begins a pass: it keeps a copy of the object as read, against which Finish patches. Object must be the caller's
// own; what a cached client's Get filled in is.
func Start[O client.Object](c client.Client, object O) *Loop[O] {
	return &Loop[O]{client: c, before: object.DeepCopyObject().(O), object: object}
}

// SetFinalizer puts a finalizer on the object, or takes it off, in a patch of its own; nothing is written where it is
// right already. The patch carries the resourceVersion, since a list can only be replaced whole.
func (l *Loop[O]) SetFinalizer(ctx context.Context, finalizer string, wanted bool) error {
	next, changed := withFinalizer(l.before.GetFinalizers(), finalizer, wanted)
	if !changed {
		return nil
	}
	target := l.before.DeepCopyObject().(O)
	target.SetFinalizers(next)
	patch := client.MergeFromWithOptions(l.before, client.MergeFromWithOptimisticLock{})
	if err := l.client.Patch(ctx, target, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patching the finalizers of %q: %w", client.ObjectKeyFromObject(l.object), err)
	}
	for _, object := range []O{l.before, l.object} {
		object.SetFinalizers(next)
		object.SetResourceVersion(target.GetResourceVersion())
	}
	return nil
}

// Finish writes the object's status if it changed, in one patch, and says when to come back.
func (l *Loop[O]) Finish(ctx context.Context, outcome Outcome) (ctrl.Result, error) {
	if err := l.patch(ctx); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: ComeBack(outcome)}, nil
}

func (l *Loop[O]) patch(ctx context.Context) error {
	if equality.Semantic.DeepEqual(l.before, l.object) {
		return nil
	}
	err := l.client.Status().Patch(ctx, l.object, client.MergeFrom(l.before))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patching the status of %q: %w", client.ObjectKeyFromObject(l.object), err)
	}
	return nil
}

func withFinalizer(have []string, finalizer string, wanted bool) (next []string, changed bool) {
	for _, name := range have {
		if name != finalizer {
			next = append(next, name)
		}
	}
	if wanted {
		next = append(next, finalizer)
	}
	return next, len(next) != len(have)
}
