package installer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/backoff"
	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/health"
	"github.com/trellis-addons/trellis/pkg/removal"
	"github.com/trellis-addons/trellis/pkg/revision"
)

const (
	// stageRecheck is the wait before namespaces and CRDs that are waited for are read again; it
	// grows by half each time, up to SlowestRecheck.
	stageRecheck = 150 * time.Millisecond
	// maxPasses is more than any back-off counts.
	maxPasses = 1 << 10
)

// PlanRollout plans the rollout of the record's objects, unless it is under way, and says how many
// of them are to be written.
func (p *Pass) PlanRollout() (left int) {
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
		LookFirst:       p.Record().Method == v1.MethodHelm && p.Record().Rollback == nil, // what is brought back is brought as far as it goes
	})
	p.State.adopting = p.Asked.adoption()
	p.State.stagePasses, p.State.stageWritten = 0, 0
	return p.State.rollout.Remaining()
}

// Advance carries the rollout as far as it goes now. A rollout lives from the recorded intent to
// the record of its end; after a restart it begins anew, and what is there already is not written
// again.
func (p *Pass) Advance(ctx context.Context) *Stop {
	if stop := p.awaitRemovals(ctx); stop != nil {
		return stop
	}
	p.PlanRollout()
	var held *Stop // what stands on the foundation waits for the hooks that run before it
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
		return p.GiveWay(ctx, p.remoteFailed(AboutApply, err))
	}
	if held != nil {
		return p.GiveWay(ctx, held)
	}
	if progress.Complete {
		return nil
	}
	passes := p.State.stagePasses
	if hasReason(progress.Waiting, v1.ReasonNamespaceMissing) {
		p.State.doubtCluster() // what went with the namespace is made anew
		passes = int(p.Refusals) + 1
	}
	p.Obstacle = apply.ObstacleOf(slices.Concat(progress.Refused, progress.Waiting))
	return p.GiveWay(ctx, unfinished(progress, passes))
}

func hasReason(notes []calls.Note, reason string) bool {
	return slices.ContainsFunc(notes, func(note calls.Note) bool { return note.Reason == reason })
}

// unfinished says what a rollout waits for, or what was refused, after so many passes in a row in
// which nothing more could be written. What is refused is a write each time: it is tried ever more
// rarely, down to what keeps failing.
func unfinished(progress apply.Progress, passes int) *Stop {
	if len(progress.Refused) > 0 {
		first, wait := progress.Refused[0], backoff.After(passes, RefusedRecheck, SlowestRetry)
		if hasReason(progress.Waiting, v1.ReasonProgressing) { // others did not have their turn
			wait = stageWait(passes)
		}
		return &Stop{About: AboutApply, Reason: first.Reason, Cause: first.Cause, Message: TextOf(progress.Refused), Recheck: wait}
	}
	if len(progress.Waiting) == 0 {
		return &Stop{Kind: Retry, About: AboutApply, Reason: v1.ReasonProgressing, Recheck: stageWait(passes)}
	}
	first := progress.Waiting[0]
	stop := &Stop{About: AboutApply, Reason: first.Reason, Cause: first.Cause, Message: TextOf(progress.Waiting), Recheck: stageWait(passes)}
	switch {
	case stop.Reason != v1.ReasonNamespaceMissing:
	case progress.Unchanged > 0:
		stop.Kind, stop.Recheck = Checkpoint, 0 // it may be ours: it was not written in this rollout, because it existed
	default:
		stop.Recheck = backoff.After(passes, RefusedRecheck, SlowestRetry)
	}
	return stop
}

// stageWait is how long to wait after so many passes in a row in which nothing more could be
// written.
func stageWait(passes int) time.Duration { return backoff.Slowly(passes, stageRecheck, SlowestRecheck) }

// TextOf is the first note, and how many more there are.
func TextOf(notes []calls.Note) string {
	text := notes[0].Message
	if len(notes) > 1 {
		text += fmt.Sprintf(" (and %d more)", len(notes)-1)
	}
	return text
}

// RecordApplied puts on record that the rollout is through, with the UID of every object.
func (p *Pass) RecordApplied(ctx context.Context) *Stop {
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
		return p.doubted(err)
	}
	p.State.Record, p.State.rollout, p.State.unhealthyPasses = applied.Light(), nil, 0
	p.State.brokenSince = time.Time{}
	p.saved = &applied
	p.surveyAfter()
	p.State.health, p.State.beat = nil, health.Anew()
	p.State.repairs = sameContent(p.State.repairs, before, applied.Inventory)
	p.Applied = p.State.Record
	if applied.Revision <= revision.Kept {
		return nil // revisions count from 1: there are no more than are kept
	}
	if err := p.installer.Writes.Trim(ctx, p.Namespace, p.Owner, applied.LastGood); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "trimming release records; tried again with the next revision")
	}
	return nil
}

// surveyAfter says when a rollout is followed by a comparison with the record. Where everything was
// written, nothing can have drifted yet. Else it comes when it was to come; behind hooks that ran
// it comes at once, since they may have removed what the update does not write.
func (p *Pass) surveyAfter() {
	switch {
	case p.Progress.Unchanged == 0:
		p.State.nextSurvey = p.Now.Add(p.installer.Interval)
	case p.Record().RanHooks(p.Record().Action.Pre()):
		p.State.nextSurvey, p.State.isSurveyOutdated = time.Time{}, true
	}
}
