package installer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/backoff"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/catalogue/health"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/pkg/install/removal"
	"github.com/trellis-addons/trellis/pkg/install/revision"
)

const (
	// stageRecheck is the wait before awaited namespaces and CRDs are read again; it grows by half each time, up to
	// SlowestRecheck.
	stageRecheck = 150 * time.Millisecond
	// maxRuns is more than any back-off counts.
	maxRuns = 1 << 10
)

// PlanRollout plans the rollout of the record's objects, unless it is under way, and returns how many of them have to
// be written.
func (p *Run) PlanRollout() (left int) {
	if p.State.rollout != nil {
		return p.State.rollout.Remaining()
	}
	p.State.rollout = apply.NewRollout(p.Owner, p.Objects, p.Record().Inventory, apply.RolloutOptions{
		TargetNamespace: p.Asked.TargetNamespace,
		Adopt:           p.Asked.Adopt,
		AdoptManagers:   p.Asked.AdoptManagers,
		Release:         releaseMarks(p.Record()),
		NameOf:          p.nameOf(),
		Namespaces:      p.view().namespaces,
		Shared:          p.Record().Shared,
		LeftBy:          p.Record().LeftBy(),
		LookFirst:       catalogue.TraitsOf(p.Record().Method).LooksFirst && p.Record().Rollback == nil, // a rollback continues as far as it can
	})
	p.State.adopting = p.Asked.adoption()
	p.State.stageRuns, p.State.stageWritten = 0, 0
	return p.State.rollout.Remaining()
}

// Advance continues the rollout as far as possible now. A rollout lasts from the recorded intent to the record of its
// end. After a restart it begins again, and existing objects are not written again.
func (p *Run) Advance(ctx context.Context) *loop.Outcome {
	if stop := p.awaitRemovals(ctx); stop != nil {
		return stop
	}
	p.PlanRollout()
	var held *loop.Outcome // objects that need the foundation wait for the hooks that run before them
	p.State.rollout.SetGate(func(ctx context.Context) (bool, error) {
		held = p.beforeWorkloads(ctx)
		return held == nil, nil
	})
	p.State.rollout.SetNeighbours(p.neighbours())
	progress, err := p.State.rollout.Advance(ctx, p.target())
	p.Progress, p.Misbehaved = progress, progress.Misbehaved
	p.Taken = append(p.Taken, progress.Taken...)
	p.State.countStage(progress.Written)
	if stop := p.recordShared(ctx); stop != nil {
		return stop
	}
	if stop := cmp.Or(handover(err), p.unsaved(err)); stop != nil {
		return stop
	}
	if err != nil {
		return p.GiveWay(ctx, p.remoteFailed(v1.ConditionApplied, err))
	}
	if held != nil {
		return p.GiveWay(ctx, held)
	}
	if progress.Complete {
		return nil
	}
	runs := p.State.stageRuns
	if hasReason(progress.Waiting, v1.ReasonNamespaceMissing) {
		p.State.markClusterUnknown() // objects that were deleted with the namespace are recreated
		runs = int(p.Refusals) + 1
	}
	p.Obstacle = apply.ObstacleOf(slices.Concat(progress.Refused, progress.Waiting))
	return p.GiveWay(ctx, unfinished(progress, runs))
}

func hasReason(notes []calls.Note, reason string) bool {
	return slices.ContainsFunc(notes, func(note calls.Note) bool { return note.Reason == reason })
}

// unfinished is the outcome of a rollout that waits or was refused, after a number of consecutive reconciliations
// without a new write. Each retry of a refused object is a write, so retries become rarer, down to the interval of
// persistent failures.
func unfinished(progress apply.Progress, runs int) *loop.Outcome {
	if len(progress.Refused) > 0 {
		wait := backoff.After(runs, RefusedRecheck, SlowestRetry)
		if hasReason(progress.Waiting, v1.ReasonProgressing) { // the other objects were not tried yet
			wait = stageWait(runs)
		}
		return waitForNotes(progress.Refused, wait)
	}
	if len(progress.Waiting) == 0 {
		return &loop.Outcome{Kind: loop.RetryAt, Condition: v1.ConditionApplied, Reason: v1.ReasonProgressing, Recheck: stageWait(runs)}
	}
	stop := waitForNotes(progress.Waiting, stageWait(runs))
	switch {
	case stop.Reason != v1.ReasonNamespaceMissing:
	case progress.Unchanged > 0:
		// the object may be ours: it was not written in this rollout, because it existed
		stop.Kind, stop.Cause, stop.Recheck = loop.Checkpoint, "", loop.AtOnce
	default:
		stop.Recheck = backoff.After(runs, RefusedRecheck, SlowestRetry)
	}
	return stop
}

// stageWait is the wait after a number of consecutive reconciliations without a new write.
func stageWait(runs int) time.Duration { return backoff.Slowly(runs, stageRecheck, SlowestRecheck) }

// TextOf is the first note, and the number of the others.
func TextOf(notes []calls.Note) string {
	text := notes[0].Message
	if len(notes) > 1 {
		text += fmt.Sprintf(" (and %d more)", len(notes)-1)
	}
	return text
}

// RecordApplied records that the rollout is complete, with the UID of every object.
func (p *Run) RecordApplied(ctx context.Context) *loop.Outcome {
	if p.Decision.IsApplied() {
		return nil
	}
	applied, before := *p.Record(), p.Record().Inventory
	applied.State, applied.Time = revision.StateApplied, p.stamp()
	applied.SupersededOf = countEarlier(p.Record())
	applied.Superseded = append(removal.Prunable(p.Record().Inventory, p.Progress.Inventory), p.Record().Superseded...)
	applied.Superseded = removal.Prunable(applied.Superseded, p.Progress.Inventory).Without(applied.Shared)
	applied.Inventory = p.Progress.Inventory
	if !applied.HasHooks(applied.Action.Post()) {
		applied.Deployed()
	}
	if err := p.save(ctx, &applied); err != nil {
		return p.recordUnknown(err)
	}
	p.State.Record, p.State.rollout, p.State.unhealthyRuns = applied.Light(), nil, 0
	p.State.brokenSince = time.Time{}
	p.saved = &applied
	p.surveyAfter()
	p.State.health, p.State.beat = nil, health.NewBeat()
	p.State.repairs = sameContent(p.State.repairs, before, applied.Inventory)
	p.Applied = p.State.Record
	if applied.Revision <= revision.Kept {
		return nil // revisions count from 1: no more exist than are kept
	}
	if err := p.installer.Writes.Trim(ctx, p.Namespace, p.Owner, applied.LastGood); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "trimming release records; tried again with the next revision")
	}
	return nil
}

// surveyAfter sets when a comparison with the record follows a rollout. If everything was written, nothing can have
// drifted yet. Otherwise the next comparison keeps its time; after hooks it is done at once, since they may have
// removed objects that the update does not write.
func (p *Run) surveyAfter() {
	switch {
	case p.Progress.Unchanged == 0:
		p.State.nextSurvey = p.Now.Add(p.installer.Interval)
	case p.Record().RanHooks(p.Record().Action.Pre()):
		p.State.nextSurvey, p.State.isSurveyOutdated = time.Time{}, true
	}
}
