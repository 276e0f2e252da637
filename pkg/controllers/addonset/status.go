package addonset

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/backoff"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/fleet/waves"
)

// shown is the last written status, and when the next write is allowed.
type shown struct {
	status v1.AddonSetStatus
	writes backoff.Writes
}

// report writes the status if it differs, but not more often than the interval allows, and reports the changes.
func (r *Reconciler) report(ctx context.Context, f *setFacts) *loop.Outcome {
	r.mutex.Lock()
	if !f.running.counted {
		r.mutex.Unlock()
		return &loop.Outcome{Kind: loop.Done}
	}
	wanted := statusOf(f)
	before := f.running.shown
	r.mutex.Unlock()
	if equality.Semantic.DeepEqual(before.status, *wanted) {
		return &loop.Outcome{Kind: loop.Done, Recheck: f.next}
	}
	if wait := before.writes.Wait(r.Clock.Now()); wait > 0 {
		return &loop.Outcome{Kind: loop.Done, Recheck: wait}
	}
	if err := r.writeStatus(ctx, f, wanted); err != nil {
		return failed(err)
	}
	waves.Announce(r.Recorder, f.copy, &before.status, wanted)
	return &loop.Outcome{Kind: loop.Done, Recheck: f.next}
}

// statusOf is the status of a set. The caller holds the mutex.
func statusOf(f *setFacts) *v1.AddonSetStatus {
	run := f.running
	made := waves.Shown{
		Generation: f.copy.Generation, Catalogues: dependencies(run.set, run.offers), Revision: run.revision, StartedAt: run.startedAt,
		Before: run.shown.status.Conditions,
	}
	made.Reason, made.Message = readyOf(f)
	if !f.copy.DeletionTimestamp.IsZero() && !run.deleting {
		made.DeletionBlocked = fmt.Sprintf(
			"the set is to be deleted, and stays in use until it has annotation %s: %s", v1.AnnotationConfirmDeletion, f.name)
	}
	status := waves.StatusOf(made, run.tally, run.moves(), run.decision)
	status.Removal = run.guard.Pending.DeepCopy()
	return status
}

// readyOf is the reason and message of condition Ready: the worst finding.
func readyOf(f *setFacts) (reason, message string) {
	run := f.running
	decided := run.decision
	switch {
	case run.deleting:
		return v1.ReasonRemoving, fmt.Sprintf("the set's installations are being removed: %s left", text.Count(len(run.clusters), "cluster"))
	case run.paused:
		return v1.ReasonPaused, "nothing is written; status.pending lists the changes that wait"
	case f.gateProblem != nil && decided.Reason != v1.ReasonComplete:
		return v1.ReasonHalted, f.gateProblem.Error()
	}
	return run.guard.Ready(decided)
}

// refuse handles a set that can't be read: nothing of it changes, and the previous set does not continue.
func (r *Reconciler) refuse(ctx context.Context, f *setFacts, why error) *loop.Outcome {
	r.markUnknown(f.copy)
	wanted, isNew := waves.Refused(f.copy, why.Error())
	if !isNew {
		return &loop.Outcome{Kind: loop.Done}
	}
	if err := waves.WriteStatus(ctx, r.Client, fieldOwner, f.copy, wanted); err != nil {
		return failed(err)
	}
	return &loop.Outcome{Kind: loop.Done}
}

// writeStatus writes the status and stores it.
func (r *Reconciler) writeStatus(ctx context.Context, f *setFacts, wanted *v1.AddonSetStatus) error {
	if err := waves.WriteStatus(ctx, r.Client, fieldOwner, f.copy, wanted); err != nil {
		return err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	f.running.shown.status = *wanted
	return nil
}
