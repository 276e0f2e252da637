package installer

import (
	"context"
	"errors"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/backoff"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/helmrelease"
	"github.com/trellis-addons/trellis/pkg/install/removal"
	"github.com/trellis-addons/trellis/pkg/install/revision"
)

// Revisions that users made of our Helm release by hand, with `helm upgrade`, `rollback` or `install` (ADR 41).

// maxByHandRuns is how often the pause between two of them doubles, beginning with the interval of comparisons.
const maxByHandRuns = 6

// maxHookLeftovers is how many leftover objects of hooks are removed at a time.
const maxHookLeftovers = 50

// followByHand looks, with each comparison, for revisions of the Helm release that users made. They are reported,
// objects that only they have will be pruned, leftovers of their hooks are removed, and the copy gets a later revision,
// so that helm shows ours.
func (p *Run) followByHand(ctx context.Context) *loop.Outcome {
	record := p.Record()
	waits := p.Now.Before(p.State.nextByHand) && !p.IsAskedFor()
	if !p.Decision.Repairs(record) || !record.IsDeployed() || waits || !p.surveyDue() && !p.State.copyNumberTaken {
		return nil
	}
	changed, err := p.copyChanged(ctx)
	if err != nil || !changed {
		p.State.byHandRuns = 0
		return nil // the comparison reports a failed list
	}
	found, err := helmrelease.FindByHand(ctx, p.helmPlace(record.Helm.Namespace), record.Helm, p.Owner)
	p.State.copyNumberTaken = false
	if err == nil && (found == nil || found.IsUnderWay(p.Now, record.Timeout.Duration)) {
		return nil
	}
	p.State.nextByHand = p.Now.Add(backoff.After(p.State.byHandRuns, p.installer.Interval, p.installer.Interval<<maxByHandRuns))
	p.State.byHandRuns = min(p.State.byHandRuns+1, maxByHandRuns)
	if err != nil {
		logByHand(ctx, err)
		return nil
	}
	if err := p.continueAfter(ctx, found); err != nil {
		return p.recordUnknown(err)
	}
	return nil
}

// logByHand logs problems with revisions that users made: they do not block an installation.
func logByHand(ctx context.Context, err error) {
	ctrl.LoggerFrom(ctx).Info("manual revisions of the Helm release can't be read", "problem", calls.Said(err))
}

// copyChanged says whether the copy changed since it was written, or is followed by a foreign revision, in the list
// that installations of the cluster share.
func (p *Run) copyChanged(ctx context.Context) (bool, error) {
	helm := p.Record().Helm
	if p.State.copyNumberTaken {
		return true, nil
	}
	if p.IsAskedFor() {
		return p.helmPlace(helm.Namespace).IsFollowed(ctx, helm)
	}
	survey := p.view().survey.Load()
	next := *helm
	next.Revision++
	followed, err := survey.SecretVersion(ctx, p.target(), helm.Namespace, next.Secret())
	if err != nil || followed != "" {
		return true, err
	}
	version, err := survey.SecretVersion(ctx, p.target(), helm.Namespace, helm.Secret())
	return p.State.helmVersion != "" && version != p.State.helmVersion, err
}

// continueAfter records that the release continues after a user's revision, and the objects that only that revision
// has.
func (p *Run) continueAfter(ctx context.Context, found *helmrelease.Foreign) error {
	record := p.Record()
	left, err := p.byHandExtras(ctx, found, slices.Concat(record.Superseded, record.Inventory))
	if err != nil {
		logByHand(ctx, err)
		return nil
	}
	left = left[:min(len(left), max(0, ownership.MaxObjects-len(record.Superseded)))] // the rest stays in the cluster
	err = p.amend(ctx, func(kept *revision.Record) {
		kept.ContinueAfter(found.Revision, p.stamp())
		kept.Superseded = append(kept.Superseded, left...)
		kept.SupersededOf = countEarlier(kept)
	})
	if err != nil {
		return err
	}
	p.saved = nil
	p.reportAdoption(found, left)
	p.State.helmWritten, p.State.helmVersion = "", ""
	return nil
}

// byHandExtras finds objects of users' revisions that the installation lacks, and removes leftovers of their hooks,
// which would conflict with ours. A running hook ends with that, as with the next `helm upgrade`.
func (p *Run) byHandExtras(
	ctx context.Context, found *helmrelease.Foreign, known ownership.Inventory,
) (ownership.Inventory, error) {
	options := removal.LeftoverOptions{
		Owner: p.Owner, Marks: found.Marks(),
		Wanted: p.Objects, Known: known, NameOf: p.nameOf(),
	}
	left, err := removal.Leftovers(ctx, p.target(), found.Objects, options)
	if err != nil {
		return nil, err
	}
	options.Hooks = true
	hooks, err := removal.Leftovers(ctx, p.target(), found.Hooks, options)
	if err != nil || len(hooks) == 0 {
		return left, err
	}
	hooks = hooks[:min(len(hooks), maxHookLeftovers)]
	_, _, err = removal.Prune(ctx, p.target(), hooks, removal.PruneOptions{Owner: p.Owner, Total: 2 * len(hooks)})
	return left, err
}

// byHandBefore looks, before a new revision, for later revisions that users made: ours follows them.
func (p *Run) byHandBefore(ctx context.Context, ours *helmrelease.Release) *loop.Outcome {
	found, err := p.followers(ctx, ours)
	if err != nil {
		return p.remoteFailed(v1.ConditionApplied, err)
	}
	p.Foreign = found
	return nil
}

func (p *Run) followers(ctx context.Context, ours *helmrelease.Release) (*helmrelease.Foreign, error) {
	place := p.helmPlace(ours.Namespace)
	if followed, err := place.IsFollowed(ctx, ours); err != nil || !followed {
		return nil, err
	}
	return helmrelease.FindByHand(ctx, place, ours, p.Owner)
}

// followByHandLast does the same before a removal: objects that only users' revisions have are removed too. Problems
// with them do not block the removal.
func (p *Run) followByHandLast(ctx context.Context) *loop.Outcome {
	record := p.Record()
	if record.Helm == nil || !record.IsComplete() || p.State.helmWritten == copyIsUninstalling {
		return nil
	}
	found, err := p.followers(ctx, record.Helm)
	if err == nil && found != nil {
		next := &helmrelease.Release{Name: found.Name, Revision: found.Revision + 1}
		err = helmrelease.Adopt(ctx, p.helmPlace(found.Namespace), next, p.Owner)
	}
	if err == nil && found != nil {
		err = p.continueAfter(ctx, found)
		if err != nil && !errors.Is(err, errGone) { // known objects of a deleted record are removed anyway
			return p.recordUnknown(err)
		}
	}
	if err != nil {
		logByHand(ctx, err)
	}
	return nil
}

// releaseMarks identify the objects of an adopted release: objects that Helm created for it are adopted too.
func releaseMarks(record *revision.Record) *ownership.HelmMarks {
	if record == nil || record.Helm == nil || !record.Helm.Adopted {
		return nil
	}
	marks := record.Helm.Marks()
	return &marks
}

// isNumberTaken says whether the copy could not be written because a user made a revision of its number.
func isNumberTaken(err error) bool {
	_, taken := errors.AsType[*helmrelease.NameTakenError](err)
	return taken
}

// reportByHand reports revisions that users made.
func (p *Run) reportByHand(found *helmrelease.Foreign, left ownership.Inventory) {
	shown := "their changes are reverted"
	if len(left) > 0 {
		shown += "; these objects are only in them and will be pruned: " + text.Names(keyTexts(left), maxNamed)
	}
	p.report(Event{Warning: true, Reason: v1.EventReleaseChanged, Action: "TakeBack"},
		"users or tools created revisions of Helm release %q in namespace %q, up to revision %d: %s, and the release continues as revision %d; "+
			"change the installation instead", found.Name, found.Namespace, found.Revision, shown, p.Record().Helm.Revision)
}
