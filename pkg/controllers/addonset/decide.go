package addonset

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
)

// decide selects the clusters that may move now, and wakes them. A paused set grants nothing.
func (r *Reconciler) decide(ctx context.Context, f *setFacts) *loop.Outcome {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	run := f.running
	if !run.counted { // another reconciliation changed the count meanwhile, and woke this set
		return &loop.Outcome{Kind: loop.Done}
	}
	hasStarted, err := r.start(ctx)
	if err != nil {
		return failed(err)
	}
	r.guard(f)
	gate, err := rollout.ReadGate(f.copy.Annotations[v1.AnnotationGate], run.revision)
	f.gateProblem = err
	if run.deleting {
		gate = rollout.ByRule
	}
	run.tally.SetOthers(len(r.present) > 0)
	run.decision = rollout.Decide(run.moves(), run.tally, gate)
	if run.decision.Reason == v1.ReasonHalted { // each time: a write that was under way at the start of the halt may have failed
		r.revoke(run)
	}
	if !hasStarted || !run.writes() {
		return nil
	}
	for _, name := range run.decision.Move {
		one := run.clusters[name]
		one.Grant(r.Clock.Now())
		run.granted[name] = true
		run.tally.Put(name, one.ClusterStatus.ClusterStatus)
		r.wakeCluster(one.key)
	}
	if len(run.decision.Move) > 0 {
		run.decision = rollout.Decide(run.moves(), run.tally, gate)
	}
	return nil
}

// revoke revokes the places of clusters to which nothing was written yet. The caller holds the mutex.
func (r *Reconciler) revoke(run *running) {
	for name := range run.granted {
		if one := run.clusters[name]; one.Revoke() {
			delete(run.granted, name)
			r.wakeCluster(one.key)
		}
	}
}

// guard makes removals wait for approval if they are many at a time. The installations of a set that is being deleted
// are removed without approval, since its deletion was confirmed.
func (r *Reconciler) guard(f *setFacts) {
	run := f.running
	var looked, held []string
	if run.deleting {
		held = run.guard.Lift()
	} else {
		looked, held = run.guard.Evaluate(run.shown.status.Removal, f.copy.Annotations[v1.AnnotationRemovalApproved])
	}
	for _, name := range held {
		one := run.clusters[name]
		one.Hold(run.guard.Waiting, r.Clock.Now())
		run.tally.Put(name, one.ClusterStatus.ClusterStatus)
		r.wakeCluster(one.key) // the waiting removals affected its state
	}
	for _, name := range looked {
		if one := run.clusters[name]; one.IsGranted() {
			r.wakeCluster(one.key)
		}
	}
}

// release removes the finalizer from a deleted copy once none of its installations is left. It asks past the cache.
func (r *Reconciler) release(ctx context.Context, f *setFacts) *loop.Outcome {
	r.mutex.Lock()
	isDone := f.running.deleting && len(f.running.clusters) == 0
	r.mutex.Unlock()
	if !isDone {
		return nil
	}
	var left v1.AddonInstallationList
	err := r.Reader.List(ctx, &left, client.Limit(1), client.MatchingLabels{v1.LabelSet: f.name, v1.LabelManagedBy: v1.ManagedBySets})
	if err != nil {
		return failed(fmt.Errorf("listing the installations of AddonSet %q: %w", f.name, err))
	}
	if len(left.Items) > 0 { // in a cluster that is not counted: paused, another worker's, or deleted
		f.next = leftRecheck
		return nil
	}
	if err := loop.Start(r.Client, f.copy).SetFinalizer(ctx, v1.FinalizerCleanupSet, false); err != nil {
		return failed(err)
	}
	r.forget(f.name)
	return &loop.Outcome{Kind: loop.Done}
}

// leftRecheck is the interval between checks of a deleted set with installations in clusters that are not counted.
const leftRecheck = 30 * time.Second
