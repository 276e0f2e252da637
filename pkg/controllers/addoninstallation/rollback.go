package addoninstallation

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/helmrelease"
	"github.com/trellis-addons/trellis/pkg/hooks"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/revision"
	"github.com/trellis-addons/trellis/pkg/survey"
)

// Atomic upgrades (ADR 22): one that is not applied and healthy in time gives way to the revision that was healthy last.

// lastGood is the revision that the next one would give way to: the present one if it was healthy once, else the one that it
// would give way to itself. A version that clusters are to leave is none. Of an upgrade that does not give way only what is on record
// counts: what else this process happened to see would differ with its pace.
func (r *Reconciler) lastGood(ctx context.Context, f *facts) (int, error) {
	record := f.record()
	good, sure := record.Good()
	switch {
	case f.choice.Leaves:
		return 0, nil
	case sure, !f.choice.Version.Template.Atomic:
		return good, nil
	case f.memory.health != nil && healthy(f.memory.health):
		return record.Revision, nil
	case f.memory.health != nil:
		return good, nil
	}
	health, err := survey.Assess(ctx, f.target(), f.owner, record.Inventory) // a process that has just begun knows nothing
	if err == nil && healthy(&health) {
		return record.Revision, nil
	}
	return good, err
}

// isAnswer says whether an error was given by the user cluster, rather than by the way to it.
func isAnswer(err error) bool {
	var answer apierrors.APIStatus
	return errors.As(err, &answer)
}

// orRollBack is the outcome of a revision that is not applied or not healthy yet, or the beginning of its rollback.
func (r *Reconciler) orRollBack(ctx context.Context, f *facts, outcome loop.Outcome) loop.Outcome {
	left, limited := f.record().TimeLeft(f.memory.watched, f.now)
	switch {
	case !limited:
		return outcome
	case left > 0:
		return earlier(outcome, loop.Done{Recheck: left + atOnce})
	}
	good, err := r.Records.LoadRevision(ctx, f.installation.Namespace, f.owner, f.record().LastGood)
	var damaged *revision.DamagedError
	if errors.As(err, &damaged) || err == nil && good == nil {
		return outcome // nothing to go back to
	}
	if err != nil {
		return failed(err)
	}
	back, err := rollbackOf(f, good, judge(outcome).message)
	if err != nil {
		return failed(err)
	}
	if err := r.Records.SaveIntent(ctx, f.installation.Namespace, back); err != nil {
		f.memory.doubt()
		return failed(err)
	}
	f.memory.begin(back)
	f.memory.health, f.memory.looks = nil, 0
	return checkpoint(kubermaticv1.ConditionApplied,
		fmt.Sprintf("version %q failed: version %q is brought back", back.Rollback.Version, back.Version))
}

// rollbackOf is the revision that brings a good one back: its objects and values from the record, over whatever the failed one
// has left in the user cluster.
func rollbackOf(f *facts, good *revision.Record, problem string) (*revision.Record, error) {
	failed := f.record()
	objects, err := decodeObjects(good.Objects)
	if err != nil {
		return nil, err
	}
	back := good.Again()
	back.Revision, back.State, back.Time, back.From = failed.Revision+1, revision.StateIntent, f.stamp(), good.Version
	back.Healthy, back.LastGood, back.Settled = false, failed.LastGood, failed.Settled
	back.Inventory, back.Superseded = apply.Planned(objects, failed.Standing()), failed.Superseded
	back.Shared, back.FormerAddon = failed.Shared, failed.FormerAddon
	back.Rollback = &revision.Rollback{
		To: good.Revision, Failed: failed.Revision, Version: failed.Version, Inputs: failed.Inputs, Problem: problem,
		ReconcileAt: f.installation.Annotations[kubermaticv1.AnnotationReconcileAt],
	}
	back.Helm = helmRollback(f, good)
	back.Former = formerRelease(failed, back.Helm)
	back.Hooks, back.HooksState = hooks.NotRun(good.Hooks), hooks.State{}
	back.Begin(hooks.ActionRollback)
	return back, nil
}

// helmRollback is the good revision's Helm release, as the next revision of its history.
func helmRollback(f *facts, good *revision.Record) *helmrelease.Release {
	if good.Helm == nil {
		return nil
	}
	helm := *good.Helm
	helm.Description = fmt.Sprintf("Rollback to %d", helm.Revision)
	if newest := previousHelm(f); newest != nil && newest.Name == helm.Name {
		helm.Revision = max(helm.Revision, newest.Revision)
	}
	helm.Revision++
	helm.LastDeployed = f.stamp()
	return &helm
}

// goBack takes a rollback further where the pass ended before it: it needs neither catalogue nor content, and what was asked
// for meanwhile can't be followed.
func (r *Reconciler) goBack(ctx context.Context, f *facts) loop.Outcome {
	if f.memory.rollout == nil {
		if outcome := readIntent(f); outcome != nil {
			return outcome
		}
	}
	return r.rollOut(ctx, f)
}

// asGivenUp turns the outcome of an installation that was rolled back: everything may be well with what is there, and it is not what
// was asked for.
func asGivenUp(f *facts, outcome loop.Outcome) loop.Outcome {
	if f.decision.Do != revision.GivenUp && f.decision.Do != revision.GoBack || !f.record().IsComplete() {
		return outcome
	}
	message := givenUpText(f.record())
	switch o := outcome.(type) {
	case loop.Done:
	case loop.Waiting:
		if o.Condition != kubermaticv1.ConditionHealthy && o.Condition != kubermaticv1.ConditionApplied {
			return outcome
		}
		message += "; now " + o.Message
	default:
		return outcome
	}
	return loop.Stalled{
		Condition: kubermaticv1.ConditionApplied, Reason: kubermaticv1.ReasonRolledBack, Message: message, Recheck: loop.ComeBack(outcome),
	}
}

func givenUpText(record *revision.Record) string {
	return fmt.Sprintf("version %q was given up and version %q is back: choose another version, mend the values, or set annotation %s to "+
		"try once more; it failed since %s", record.Rollback.Version, record.Version, kubermaticv1.AnnotationReconcileAt, record.Rollback.Problem)
}
