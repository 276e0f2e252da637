package installer

import (
	"context"
	"errors"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/backoff"
	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/helmrelease"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/removal"
	"github.com/trellis-addons/trellis/pkg/revision"
	"github.com/trellis-addons/trellis/pkg/text"
)

// Revisions that somebody made of our Helm release by hand, with `helm upgrade`, `rollback` or
// `install` (ADR 41).

// maxByHandPasses is how often the pause between two of them doubles, of which the first is the
// interval of comparisons.
const maxByHandPasses = 6

// maxHookLeftovers is how many objects that hooks left are removed at a time.
const maxHookLeftovers = 50

// followByHand finds out, with each comparison, whether somebody made revisions of the Helm
// release. They are reported; what only they have is to be pruned, what their hooks left is
// removed, and the copy gets a revision after theirs, so that helm shows ours.
func (p *Pass) followByHand(ctx context.Context) *Stop {
	record := p.Record()
	waits := p.Now.Before(p.State.nextByHand) && !p.IsAskedFor()
	if !p.Decision.Repairs(record) || !record.IsDeployed() || waits || !p.surveyDue() && !p.State.copyNumberTaken {
		return nil
	}
	changed, err := p.copyChanged(ctx)
	if err != nil || !changed {
		p.State.byHandPasses = 0
		return nil // a list that fails is reported by the comparison
	}
	found, err := helmrelease.FindByHand(ctx, p.helmPlace(record.Helm.Namespace), record.Helm, p.Owner)
	p.State.copyNumberTaken = false
	if err == nil && (found == nil || found.IsUnderWay(p.Now, record.Timeout.Duration)) {
		return nil
	}
	p.State.nextByHand = p.Now.Add(backoff.After(p.State.byHandPasses, p.installer.Interval, p.installer.Interval<<maxByHandPasses))
	p.State.byHandPasses = min(p.State.byHandPasses+1, maxByHandPasses)
	if err != nil {
		logByHand(ctx, err)
		return nil
	}
	if err := p.continueAfter(ctx, found); err != nil {
		return p.doubted(err)
	}
	return nil
}

// logByHand is for trouble with revisions that somebody made: it keeps an installation from
// nothing.
func logByHand(ctx context.Context, err error) {
	ctrl.LoggerFrom(ctx).Info("revisions of the Helm release that were made by hand could not be looked at", "problem", calls.Said(err))
}

// copyChanged says whether the copy is not as it was written, or is followed by a revision that is
// not ours, as far as the list shows that installations of the cluster share.
func (p *Pass) copyChanged(ctx context.Context) (bool, error) {
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

// continueAfter puts on record that the release goes on after what somebody made, with what only
// that has.
func (p *Pass) continueAfter(ctx context.Context, found *helmrelease.Foreign) error {
	record := p.Record()
	left, err := p.byHandExtras(ctx, found, slices.Concat(record.Superseded, record.Inventory))
	if err != nil {
		logByHand(ctx, err)
		return nil
	}
	left = left[:min(len(left), max(0, ownership.MaxObjects-len(record.Superseded)))] // the rest stays where it is
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

// byHandExtras finds what revisions that somebody made have and the installation has not, and
// removes what their hooks made: it would stand in the way of ours. A hook that runs stops with it,
// as with the next `helm upgrade`.
func (p *Pass) byHandExtras(
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

// byHandBefore finds out, before a new revision, whether somebody made later ones of the release:
// ours comes after them.
func (p *Pass) byHandBefore(ctx context.Context, ours *helmrelease.Release) *Stop {
	found, err := p.followers(ctx, ours)
	if err != nil {
		return p.remoteFailed(AboutApply, err)
	}
	p.Foreign = found
	return nil
}

func (p *Pass) followers(ctx context.Context, ours *helmrelease.Release) (*helmrelease.Foreign, error) {
	place := p.helmPlace(ours.Namespace)
	if followed, err := place.IsFollowed(ctx, ours); err != nil || !followed {
		return nil, err
	}
	return helmrelease.FindByHand(ctx, place, ours, p.Owner)
}

// followByHandLast is the same before a removal: what only revisions made by hand have goes with
// the rest. No trouble with them keeps an installation from going.
func (p *Pass) followByHandLast(ctx context.Context) *Stop {
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
		if err != nil && !errors.Is(err, errGone) { // what is known of a record that is gone is removed all the same
			return p.doubted(err)
		}
	}
	if err != nil {
		logByHand(ctx, err)
	}
	return nil
}

// releaseMarks are those of a release that was adopted: what Helm made for it is adopted too.
func releaseMarks(record *revision.Record) *ownership.HelmMarks {
	if record == nil || record.Helm == nil || !record.Helm.Adopted {
		return nil
	}
	marks := record.Helm.Marks()
	return &marks
}

// isNumberTaken says whether the copy could not be written since somebody made a revision of its
// number.
func isNumberTaken(err error) bool {
	_, taken := errors.AsType[*helmrelease.NameTakenError](err)
	return taken
}

// reportByHand reports revisions that somebody made.
func (p *Pass) reportByHand(found *helmrelease.Foreign, left ownership.Inventory) {
	shown := "what they changed is put back"
	if len(left) > 0 {
		shown += "; only they have, and it is to be pruned: " + text.Names(keyTexts(left), maxNamed)
	}
	p.report(Event{Warning: true, Reason: v1.EventReleaseChanged, Action: "TakeBack"},
		"somebody made revisions of Helm release %q in namespace %q by hand, up to %d: %s, and the release goes on as revision %d; change "+
			"the installation instead", found.Name, found.Namespace, found.Revision, shown, p.Record().Helm.Revision)
}
