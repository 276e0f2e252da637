package installer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/pkg/install/helmrelease"
	"github.com/trellis-addons/trellis/pkg/install/hooks"
	"github.com/trellis-addons/trellis/pkg/install/revision"
)

// GiveWay is the outcome for a revision that is not applied or not healthy yet, or the beginning of its rollback.
func (p *Run) GiveWay(ctx context.Context, outcome *loop.Outcome) *loop.Outcome {
	left, limited := p.Record().TimeLeft(p.State.Watched, p.Now)
	switch {
	case !limited:
		return outcome
	case left > 0:
		return outcome.Within(left, loop.Waiting)
	}
	good, err := p.installer.Reads.LoadRevision(ctx, p.Namespace, p.Owner, p.Record().LastGood)
	var damaged *revision.DamagedError
	if errors.As(err, &damaged) || err == nil && good == nil {
		return outcome // no revision to restore
	}
	if err != nil {
		return Failed(err)
	}
	if stop := p.clearHooks(ctx, good.Hooks); stop != nil {
		return stop
	}
	back, err := p.rollbackOf(good, outcome)
	if err != nil {
		return Failed(err)
	}
	if err := p.save(ctx, back); err != nil {
		return p.recordUnknown(err)
	}
	p.State.begin(back)
	p.State.health, p.State.unhealthyRuns, p.State.brokenSince = nil, 0, time.Time{}
	return &loop.Outcome{
		Kind: loop.Checkpoint, Recheck: loop.AtOnce, Condition: v1.ConditionApplied, Reason: v1.ReasonProgressing,
		Message: fmt.Sprintf("version %q failed: rolling back to version %q", back.Rollback.Version, back.Version),
	}
}

// rollbackOf is the revision that restores a good one: its objects and values from the record, over those that the
// failed one left in the user cluster.
func (p *Run) rollbackOf(good *revision.Record, by *loop.Outcome) (*revision.Record, error) {
	failed := p.Record()
	objects, err := revision.DecodeObjects(good.Objects)
	if err != nil {
		return nil, err
	}
	back := good.Unsaved()
	back.Revision, back.State, back.Time, back.From = failed.Revision+1, revision.StateIntent, p.stamp(), good.Version
	back.Healthy, back.LastGood, back.Settled = false, failed.LastGood, failed.Settled
	back.Inventory, back.Superseded = apply.Planned(objects, failed.InCluster()), failed.Superseded
	back.Shared, back.PreviousAddon = failed.Shared, failed.PreviousAddon
	back.Siblings = slices.Compact(slices.Sorted(slices.Values(slices.Concat(good.Siblings, failed.Siblings)))) // each may leave objects
	back.Hub = failed.Ask(good.Access)
	back.Rollback = &revision.Rollback{
		To: good.Revision, Failed: failed.Revision, Version: failed.Version, Inputs: failed.Inputs, Problem: p.Hide(by.Message), Cause: by.Cause,
		ReconcileAt: p.Asked.ReconcileAt,
	}
	back.Helm = p.helmRollback(good)
	back.Previous = previousRelease(failed, back.Helm)
	back.Hooks, back.HooksState = hooks.NotRun(good.Hooks), hooks.State{}
	back.Begin(hooks.ActionRollback)
	return back, nil
}

// helmRollback is the good revision's Helm release, as the next revision of its history.
func (p *Run) helmRollback(good *revision.Record) *helmrelease.Release {
	if good.Helm == nil {
		return nil
	}
	helm := *good.Helm
	helm.Description = fmt.Sprintf("Rollback to %d", helm.Revision)
	if newest := p.previousRelease(); newest != nil && newest.Name == helm.Name {
		helm.Revision = max(helm.Revision, newest.Revision)
	}
	helm.Revision++
	helm.LastDeployed = p.stamp()
	return &helm
}
