package addonset

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/rollout"
)

// decide which clusters may move now, and wake them. A paused set grants nothing.
func (r *Reconciler) decide(ctx context.Context, f *setFacts) loop.Outcome {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	run := f.running
	if !run.counted { // another pass changed what counts meanwhile, and woke this set
		return loop.Done{}
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
	if run.decision.Reason == v1.ReasonHalted { // also what was written as the halt began, and is not
		r.takeBack(run)
	}
	if !hasStarted || !run.writes() {
		return nil
	}
	for _, name := range run.decision.Move {
		one := run.clusters[name]
		one.Grant(r.Clock.Now())
		run.granted[name] = true
		run.tally.Put(name, one.Standing.Standing)
		r.wakeCluster(one.key)
	}
	if len(run.decision.Move) > 0 {
		run.decision = rollout.Decide(run.moves(), run.tally, gate)
	}
	return nil
}

// takeBack the places of clusters that nothing was written to yet. The mutex is held.
func (r *Reconciler) takeBack(run *running) {
	for name := range run.granted {
		if one := run.clusters[name]; one.TakeBack() {
			delete(run.granted, name)
			r.wakeCluster(one.key)
		}
	}
}

// guard removals: many at a time wait for approval. What a set that is deleted made goes: its
// deletion was confirmed.
func (r *Reconciler) guard(f *setFacts) {
	run := f.running
	var looked, held []string
	if run.deleting {
		held = run.guard.Lift()
	} else {
		looked, held = run.guard.Judge(run.shown.status.Removal, f.copy.Annotations[v1.AnnotationRemovalApproved])
	}
	for _, name := range held {
		one := run.clusters[name]
		one.Hold(run.guard.Waiting, r.Clock.Now())
		run.tally.Put(name, one.Standing.Standing)
		r.wakeCluster(one.key) // what is at once, or sick, stood by what waited
	}
	for _, name := range looked {
		if one := run.clusters[name]; one.IsGranted() {
			r.wakeCluster(one.key)
		}
	}
}

// release takes the finalizer off a copy that is deleted, once nothing that it made is left. It
// asks past the cache.
func (r *Reconciler) release(ctx context.Context, f *setFacts) loop.Outcome {
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
	if len(left.Items) > 0 { // in a cluster that is not looked at now: paused, another worker's, or gone
		f.next = leftRecheck
		return nil
	}
	if err := loop.Start(r.Client, f.copy).SetFinalizer(ctx, v1.FinalizerCleanupSet, false); err != nil {
		return failed(err)
	}
	r.forget(f.name)
	return loop.Done{}
}

// leftRecheck is how often a deleted set is looked at that has installations in clusters that are
// not counted.
const leftRecheck = 30 * time.Second
