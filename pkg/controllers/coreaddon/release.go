package coreaddon

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/waves"
)

// release removes the finalizer of what may be deleted, and deletes what is out of the set. After a
// crash in between, the next pass continues: an installation without its finalizer is still out of
// the set.
func (r *Reconciler) release(ctx context.Context, f *facts) loop.Outcome {
	if f.inForce != nil {
		ended, cancel := context.WithTimeout(ctx, waves.WriteTimeout)
		defer cancel()
		ctx = ended
	}
	if err := r.checkRemovals(ctx, f); err != nil {
		return failed(err)
	}
	for _, installation := range slices.Concat(f.plan.release, f.plan.remove) {
		pass := loop.Start(r.Client, installation.DeepCopy())
		if err := pass.SetFinalizer(ctx, v1.FinalizerCoreProtection, false); err != nil {
			r.noteAnswer(f, installation.Name, err)
			r.noteRefused(f, installation.Name, err)
			return failed(err)
		}
	}
	for _, installation := range f.plan.remove {
		err := r.Client.Delete(ctx, installation.DeepCopy(), client.Preconditions{UID: &installation.UID})
		if client.IgnoreNotFound(err) != nil {
			r.noteAnswer(f, installation.Name, err)
			r.noteRefused(f, installation.Name, err)
			return failed(fmt.Errorf("deleting installation %q, which is out of the set: %w", installation.Name, err))
		}
		r.noteWritten(f, installation, true)
		if f.inForce != nil {
			r.moves.Add(1)
		}
	}
	return nil
}

// checkRemovals asks the API server whether the Cluster and the custom list are what removals were
// planned by: a cache may be behind, and what was removed does not come back as it was (ADR 76).
func (r *Reconciler) checkRemovals(ctx context.Context, f *facts) error {
	if len(f.plan.remove) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, waves.WriteTimeout)
	defer cancel()
	live, err := r.Live.Live(ctx, f.cluster.Ref)
	if err != nil {
		return fmt.Errorf("before core add-ons are removed: %w", err)
	}
	if live.UID != f.cluster.UID || r.clusterChanged(f.cluster, live) {
		return fmt.Errorf("the Cluster of namespace %q is not what the cache has: no core add-on is removed by that", f.asked.Namespace)
	}
	held, err := listIn(ctx, r.list, r.Options.Namespace)
	if err != nil {
		return err
	}
	present, err := listIn(ctx, r.Reader, r.Options.Namespace)
	if err != nil {
		return fmt.Errorf("before core add-ons are removed: %w", err)
	}
	if (held == nil) != (present == nil) || held != nil && held.ResourceVersion != present.ResourceVersion {
		return fmt.Errorf("ConfigMap %q is not what the cache has: no core add-on is removed by that", ListName)
	}
	return nil
}
