package addoninstallation

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/release"
	"github.com/trellis-addons/trellis/pkg/survey"
)

// Atomic upgrades (ADR 22): one that is not applied and healthy in time gives way to the revision that was healthy last.

// lastGood is the revision that the next one would give way to: the present one if it was healthy once, else the one that it
// would give way to itself. A version that clusters are to leave is none. Of an upgrade that does not give way only what is on record
// counts: what else this process happened to see would differ with its pace.
func (r *Reconciler) lastGood(ctx context.Context, f *facts) (int, error) {
	record := f.record()
	switch {
	case record == nil, f.leaving:
		return 0, nil
	case record.State != release.StateApplied:
		return record.LastGood, nil
	case record.Healthy:
		return record.Revision, nil
	case !f.entry.Template.Atomic:
		return record.LastGood, nil
	case f.memory.health != nil && healthy(f.memory.health):
		return record.Revision, nil
	case f.memory.health != nil:
		return record.LastGood, nil
	}
	health, err := survey.Assess(ctx, f.target(), f.owner, record.Inventory) // a process that has just begun knows nothing
	if err == nil && healthy(&health) {
		return record.Revision, nil
	}
	return record.LastGood, err
}

// mayGiveWay says whether a revision has to give way when its time is over: it was never healthy, and there is one to go back to.
// A rollback never gives way.
func mayGiveWay(record *release.Record) bool {
	return record != nil && record.Atomic && !record.Healthy && record.Rollback == nil && record.LastGood > 0
}

// isOverdue says whether a revision has to give way now.
func isOverdue(f *facts) bool {
	return mayGiveWay(f.record()) && !f.memory.watched.IsZero() && timeLeft(f) <= 0
}

// timeLeft is how long the revision still has. The time in which nobody could look at it does not count: an outage, a pause or a
// restart in the middle of an upgrade is no failure of the upgrade, and begins its time anew.
func timeLeft(f *facts) time.Duration {
	since := f.record().Time.Time
	if f.memory.watched.After(since) {
		since = f.memory.watched
	}
	return since.Add(f.record().Timeout.Duration).Sub(f.now)
}

// isAnswer says whether an error was given by the user cluster, rather than by the way to it.
func isAnswer(err error) bool {
	var answer apierrors.APIStatus
	return errors.As(err, &answer)
}

// orRollBack is the outcome of a revision that is not applied or not healthy yet, or the beginning of its rollback.
func (r *Reconciler) orRollBack(ctx context.Context, f *facts, outcome loop.Outcome) loop.Outcome {
	if !mayGiveWay(f.record()) || f.memory.watched.IsZero() {
		return outcome
	}
	if !isOverdue(f) {
		return earlier(outcome, loop.Done{Recheck: timeLeft(f) + atOnce})
	}
	good, err := r.Records.LoadRevision(ctx, f.installation.Namespace, f.owner, f.record().LastGood)
	var damaged *release.DamagedError
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
	return loop.Waiting{
		Condition: kubermaticv1.ConditionApplied, Reason: kubermaticv1.ReasonProgressing, Recheck: atOnce,
		Message: fmt.Sprintf("version %q failed: version %q is brought back", back.Rollback.Version, back.Version),
	}
}

// rollbackOf is the revision that brings a good one back: its objects and values from the record, over whatever the failed one
// has left in the user cluster.
func rollbackOf(f *facts, good *release.Record, problem string) (*release.Record, error) {
	failed := f.record()
	objects, err := decodeObjects(good.Objects)
	if err != nil {
		return nil, err
	}
	back := good.Again()
	back.Revision, back.State, back.Time, back.From = failed.Revision+1, release.StateIntent, f.stamp(), good.Version
	back.Healthy, back.LastGood, back.Settled = false, failed.LastGood, failed.Settled
	back.Inventory, back.Superseded = apply.Planned(objects, standingAt(failed)), failed.Superseded
	back.Shared, back.FormerAddon = failed.Shared, failed.FormerAddon
	back.Rollback = &release.Rollback{
		To: good.Revision, Failed: failed.Revision, Version: failed.Version, Inputs: failed.Inputs, Problem: problem,
		ReconcileAt: f.installation.Annotations[kubermaticv1.AnnotationReconcileAt],
	}
	back.Helm = helmRollback(f, good)
	back.Former = formerRelease(failed, back.Helm)
	back.Hooks, back.Hooking = release.NotRun(good.Hooks), release.Hooking{}
	back.Begin(release.ActionRollback)
	return back, nil
}

// helmRollback is the good revision's Helm release, as the next revision of its history.
func helmRollback(f *facts, good *release.Record) *release.HelmRelease {
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

// isGivenUp says whether what is asked for is what was given up: it is not tried again until the inputs or annotation
// reconcile-at change.
func isGivenUp(f *facts) bool {
	record := f.record()
	return record != nil && record.Skipped == 0 && record.Rollback != nil && record.Rollback.Inputs == f.inputs &&
		record.Rollback.ReconcileAt == f.installation.Annotations[kubermaticv1.AnnotationReconcileAt]
}

// isGoingBack says whether a rollback is on record and not through.
func isGoingBack(f *facts) bool {
	record := f.record()
	return record != nil && record.Rollback != nil && record.State == release.StateIntent
}

// goBack takes a rollback further where the pass ended before it: it needs neither catalogue nor content, and what was asked
// for meanwhile can't be followed.
func (r *Reconciler) goBack(ctx context.Context, f *facts) loop.Outcome {
	if f.memory.rollout == nil {
		if outcome := takeIntent(f); outcome != nil {
			return outcome
		}
	}
	return r.rollOut(ctx, f)
}

// asGivenUp turns the outcome of an installation that was rolled back: everything may be well with what is there, and it is not what
// was asked for.
func asGivenUp(f *facts, outcome loop.Outcome) loop.Outcome {
	if !f.givenUp || !f.settled() {
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

func givenUpText(record *release.Record) string {
	return fmt.Sprintf("version %q was given up and version %q is back: choose another version, mend the values, or set annotation %s to "+
		"try once more; it failed since %s", record.Rollback.Version, record.Version, kubermaticv1.AnnotationReconcileAt, record.Rollback.Problem)
}
