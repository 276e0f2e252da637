package addoninstallation

import (
	"context"
	"errors"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/backoff"
	"github.com/trellis-addons/trellis/pkg/helmrelease"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/removal"
	"github.com/trellis-addons/trellis/pkg/revision"
	"github.com/trellis-addons/trellis/pkg/text"
)

// Revisions that somebody made of our Helm release by hand, with `helm upgrade`, `rollback` or `install` (ADR 41).

// mostHandTurns is how often the pause between two of them doubles, of which the first is the interval of looks.
const mostHandTurns = 6

// mostHooksLeft is how many objects that hooks left are removed at a time.
const mostHooksLeft = 50

// takeBack looks, with a look for drift, whether somebody made revisions of the Helm release. They are told; what only they
// have is to be pruned, what their hooks left goes, and the copy gets a revision after theirs, so that helm shows ours.
func (r *Reconciler) takeBack(ctx context.Context, f *facts) loop.Outcome {
	record := f.record()
	waits := f.now.Before(f.memory.handsOff) && !r.askedFor(f)
	if !record.IsComplete() || !record.IsDeployed() || f.decision.ShowsDrift || waits || !r.surveyDue(f) && !f.memory.copyTaken {
		return nil
	}
	changed, err := r.copyChanged(ctx, f)
	if err != nil || !changed {
		f.memory.handTurns = 0
		return nil // a list that fails is told by the look for drift
	}
	found, err := helmrelease.FindByHand(ctx, r.helmPlace(f, record.Helm.Namespace), record.Helm, f.owner)
	f.memory.copyTaken = false
	if err == nil && (found == nil || found.IsUnderWay(f.now, record.Timeout.Duration)) {
		return nil
	}
	f.memory.handsOff = f.now.Add(backoff.After(f.memory.handTurns, r.Options.DriftInterval, r.Options.DriftInterval<<mostHandTurns))
	f.memory.handTurns = min(f.memory.handTurns+1, mostHandTurns)
	if err != nil {
		logHands(ctx, err)
		return nil
	}
	return r.goOnAfter(ctx, f, found)
}

// logHands is for trouble with revisions that somebody made: it keeps an installation from nothing.
func logHands(ctx context.Context, err error) {
	ctrl.LoggerFrom(ctx).Info("revisions of the Helm release that were made by hand could not be looked at", "error", err.Error())
}

// copyChanged says whether the copy is not as it was written, or is followed by a revision that is not ours, as far as the list
// shows that installations of the cluster share.
func (r *Reconciler) copyChanged(ctx context.Context, f *facts) (bool, error) {
	helm := f.record().Helm
	if f.memory.copyTaken {
		return true, nil
	}
	if r.askedFor(f) {
		return r.helmPlace(f, helm.Namespace).IsFollowed(ctx, helm)
	}
	survey := r.views.surveyOf(f.place(), r.Options.DriftInterval)
	next := *helm
	next.Revision++
	followed, err := survey.SecretVersion(ctx, f.target(), helm.Namespace, next.Secret())
	if err != nil || followed != "" {
		return true, err
	}
	version, err := survey.SecretVersion(ctx, f.target(), helm.Namespace, helm.Secret())
	return f.memory.helmVersion != "" && version != f.memory.helmVersion, err
}

// goOnAfter puts on record that the release goes on after what somebody made, with what only that has.
func (r *Reconciler) goOnAfter(ctx context.Context, f *facts, found *helmrelease.Foreign) loop.Outcome {
	record := f.record()
	left, err := r.leftBy(ctx, f, found, slices.Concat(record.Superseded, record.Inventory))
	if err != nil {
		logHands(ctx, err)
		return nil
	}
	left = left[:min(len(left), max(0, ownership.MaxObjects-len(record.Superseded)))] // the rest stays where it is
	err = r.amend(ctx, f, func(kept *revision.Record) {
		kept.ContinueAfter(found.Revision, f.stamp())
		kept.Superseded = append(kept.Superseded, left...)
		kept.SupersededOf = countEarlier(kept)
	})
	if err != nil {
		f.memory.doubt()
		return failed(err)
	}
	f.saved = nil
	r.tellTakeOver(f, found, left)
	f.memory.helmWritten, f.memory.helmVersion = "", ""
	return nil
}

// leftBy finds what revisions that somebody made have and the installation has not, and removes what their hooks made: it would stand
// in the way of ours. A hook that runs stops with it, as with the next `helm upgrade`.
func (r *Reconciler) leftBy(
	ctx context.Context, f *facts, found *helmrelease.Foreign, known ownership.Inventory,
) (ownership.Inventory, error) {
	options := removal.LeftoverOptions{
		Owner: f.owner, Marks: found.Marks(),
		Wanted: f.objects, Known: known, NameOf: r.namesIn(f.installation.Namespace, f.owner.ClusterUID),
	}
	left, err := removal.Leftovers(ctx, f.target(), found.Objects, options)
	if err != nil {
		return nil, err
	}
	options.Hooks = true
	hooks, err := removal.Leftovers(ctx, f.target(), found.Hooks, options)
	if err != nil || len(hooks) == 0 {
		return left, err
	}
	hooks = hooks[:min(len(hooks), mostHooksLeft)]
	_, _, err = removal.Prune(ctx, f.target(), hooks, removal.PruneOptions{Owner: f.owner, Total: 2 * len(hooks)})
	return left, err
}

// byHandBefore looks, before a new revision, whether somebody made later ones of the release: ours comes after them.
func (r *Reconciler) byHandBefore(ctx context.Context, f *facts, ours *helmrelease.Release) loop.Outcome {
	found, err := r.followers(ctx, f, ours)
	if err != nil {
		return r.remoteFailed(f, kubermaticv1.ConditionApplied, err)
	}
	f.foreign = found
	return nil
}

func (r *Reconciler) followers(ctx context.Context, f *facts, ours *helmrelease.Release) (*helmrelease.Foreign, error) {
	place := r.helmPlace(f, ours.Namespace)
	if followed, err := place.IsFollowed(ctx, ours); err != nil || !followed {
		return nil, err
	}
	return helmrelease.FindByHand(ctx, place, ours, f.owner)
}

// takeBackLast is the same before a removal: what only revisions made by hand have goes with the rest. No trouble with them keeps an
// installation from going.
func (r *Reconciler) takeBackLast(ctx context.Context, f *facts) loop.Outcome {
	record := f.record()
	if record.Helm == nil || !record.IsComplete() || f.memory.helmWritten == copyGoes {
		return nil
	}
	found, err := r.followers(ctx, f, record.Helm)
	if err == nil && found != nil {
		next := &helmrelease.Release{Name: found.Name, Revision: found.Revision + 1}
		err = helmrelease.Adopt(ctx, r.helmPlace(f, found.Namespace), next, f.owner)
	}
	if err == nil && found != nil {
		return r.goOnAfter(ctx, f, found)
	}
	if err != nil {
		logHands(ctx, err)
	}
	return nil
}

// releaseMarks are those of a release that is gone on with: what Helm made for it is the installation's to take.
func releaseMarks(record *revision.Record) *ownership.HelmMarks {
	if record == nil || record.Helm == nil || !record.Helm.TakenOver {
		return nil
	}
	marks := record.Helm.Marks()
	return &marks
}

// isTaken says whether the copy could not be written since somebody made a revision of its number.
func isTaken(err error) bool {
	_, taken := errors.AsType[*helmrelease.NameTakenError](err)
	return taken
}

// tellByHand tells of revisions that somebody made.
func (r *Reconciler) tellByHand(f *facts, found *helmrelease.Foreign, left ownership.Inventory) {
	shown := "what they changed is put back"
	if len(left) > 0 {
		shown += "; only they have, and it is to be pruned: " + text.Names(keyTexts(left), mostNamed)
	}
	r.Recorder.Eventf(f.installation, nil, "Warning", kubermaticv1.EventReleaseChanged, "TakeBack",
		"somebody made revisions of Helm release %q in namespace %q by hand, up to %d: %s, and the release goes on as revision %d; change "+
			"the installation instead", found.Name, found.Namespace, found.Revision, shown, f.record().Helm.Revision)
}
