package coreaddon

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/fleet/waves"
)

// release removes the finalizer of installations that may be deleted, and deletes those out of the set. After a crash
// in between, the next reconciliation continues: an installation without its finalizer is still out of the set. A
// failed removal does not stop the others.
func (r *Reconciler) release(ctx context.Context, f *facts) *loop.Outcome {
	if f.inForce != nil {
		ended, cancel := context.WithTimeout(ctx, waves.WriteTimeout)
		defer cancel()
		ctx = ended
	}
	f.failures = map[string]error{}
	if f.stale = r.checkRemovals(ctx, f); f.stale != nil {
		return nil
	}
	remove := func(live *v1.AddonInstallation) error { return r.remove(ctx, live) }
	unprotect := func(live *v1.AddonInstallation) error { return r.unprotect(ctx, live) }
	for _, installation := range f.plan.release {
		r.let(f, installation, unprotect)
	}
	for _, installation := range f.plan.remove {
		if r.let(f, installation, remove) {
			r.noteWritten(f, installation, true)
			if f.inForce != nil {
				r.moves.Add(1)
			}
		}
	}
	return nil
}

// let calls by for an installation, and notes its error.
func (r *Reconciler) let(f *facts, installation *v1.AddonInstallation, by func(*v1.AddonInstallation) error) bool {
	err := by(installation.DeepCopy())
	if err != nil {
		f.failures[installation.Name] = err
		r.noteAnswer(f, installation.Name, err)
		r.noteRefused(f, installation.Name, err)
	}
	return err == nil
}

func (r *Reconciler) unprotect(ctx context.Context, live *v1.AddonInstallation) error {
	return loop.Start(r.Client, live).SetFinalizer(ctx, v1.FinalizerCoreProtection, false)
}

// remove deletes an installation that is out of the set, unless it changed since it was read.
func (r *Reconciler) remove(ctx context.Context, live *v1.AddonInstallation) error {
	if err := r.unprotect(ctx, live); err != nil {
		return err
	}
	exactly := client.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion}
	if err := r.Client.Delete(ctx, live, exactly); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting installation %q, which is no longer in the set: %w", live.Name, err)
	}
	return nil
}

// checkRemovals evaluates removals again, by the Cluster, the custom list and the copies of sets as the API server
// has them: a cache may be stale, and a removal can't be reversed completely (ADR 76).
func (r *Reconciler) checkRemovals(ctx context.Context, f *facts) error {
	if len(f.plan.remove) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, waves.WriteTimeout)
	defer cancel()
	present, err := r.presentSet(ctx, f)
	if err != nil {
		return fmt.Errorf("reading the core set before a removal: %w", err)
	}
	if present.frozen != "" {
		return fmt.Errorf("no core add-on of namespace %q is removed: %s", f.asked.Namespace, present.frozen)
	}
	for _, one := range f.plan.remove {
		if present.find(one.Name) != nil || staysOutsideSet(&present, one) {
			return fmt.Errorf("core add-on %q of namespace %q is missing from the set in the cache only: it is not removed",
				one.Name, one.Namespace)
		}
	}
	return nil
}

// presentSet is the set of a cluster, read past the cache. If the cluster has a Core set by now, nothing is removed
// outside of its waves.
func (r *Reconciler) presentSet(ctx context.Context, f *facts) (set, error) {
	live, err := r.Live.Live(ctx, f.cluster.Ref)
	if err != nil {
		return set{}, err
	}
	if live.UID != f.cluster.UID || live.Namespace != f.cluster.Namespace || live.Paused {
		return set{frozen: "the Cluster differs from the cache"}, nil
	}
	if f.inForce == nil {
		if of, err := r.coreSetOf(ctx, r.Reader); err != nil || !of.isNone() {
			return set{frozen: "the cache does not have the present Core set"}, err
		}
	}
	list, err := listIn(ctx, r.Reader, r.Options.Namespace)
	if err != nil {
		return set{}, err
	}
	return setFor(live, r.lists.with(list), f.seed), nil
}
