package addoninstallation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/revision"
	"github.com/trellis-addons/trellis/pkg/survey"
)

// Installations of one add-on in one cluster share what is of the whole cluster (ADR 40): by their records, which are read when
// there is something to decide.

// siblings gives the other installations of the add-on, or of the one that the record had before.
func (r *Reconciler) siblings(f *facts) ownership.Siblings {
	return func(ctx context.Context) ([]ownership.Sibling, error) {
		others, err := r.siblingsOfCluster(ctx, f)
		if err != nil {
			return nil, err
		}
		leaving := slices.ContainsFunc(others, func(other kubermaticv1.AddonInstallation) bool { return isLeaving(&other) })
		if leaving && !isRemoved(f.installation) && r.handovers.underWay(f.installation.Namespace) {
			return nil, errHandover
		}
		var found []ownership.Sibling
		for i := range others {
			sibling, err := r.sibling(ctx, f, &others[i])
			if err != nil {
				return nil, err
			}
			found = append(found, sibling)
		}
		return found, nil
	}
}

// siblingsOfCluster are shared with the cache, and only read.
func (r *Reconciler) siblingsOfCluster(ctx context.Context, f *facts) ([]kubermaticv1.AddonInstallation, error) {
	addons := []string{addonOf(f)}
	if record := f.record(); record != nil {
		addons = append(addons, record.Addon, record.FormerAddon)
	}
	others, err := r.othersOfCluster(ctx, f)
	return slices.DeleteFunc(others, func(other kubermaticv1.AddonInstallation) bool {
		return !slices.Contains(addons, string(other.Spec.AddonRef.Name))
	}), err
}

func (r *Reconciler) sibling(ctx context.Context, f *facts, other *kubermaticv1.AddonInstallation) (ownership.Sibling, error) {
	age := other.CreationTimestamp.Compare(f.installation.CreationTimestamp.Time)
	sibling := ownership.Sibling{
		Name: other.Name, Leaving: isLeaving(other), Elder: cmp.Or(age, strings.Compare(other.Name, f.installation.Name)) < 0,
	}
	record, err := r.Records.Load(ctx, f.installation.Namespace, ownership.Owner{ClusterUID: f.owner.ClusterUID, Installation: other.Name})
	if _, damaged := errors.AsType[*revision.DamagedError](err); damaged || err == nil && record != nil && record.Skipped > 0 {
		sibling.Unknown = true
		return sibling, nil
	}
	if err != nil || record == nil {
		return sibling, err
	}
	if own := f.record(); own != nil {
		sibling.Foreign, sibling.Rank = record.Addon != own.Addon, rank(record, own)
	}
	objects, err := decodeObjects(record.Objects)
	if err != nil {
		return sibling, err
	}
	sibling.Objects = map[ownership.Key]string{}
	sibling.Owned, sibling.Used = map[ownership.Key]ownership.Entry{}, map[ownership.Key]ownership.Entry{}
	for _, object := range objects {
		if key := ownership.KeyOf(object); ownership.CanBeShared(key) {
			sibling.Objects[key] = ownership.SharedContent(object)
		}
	}
	for _, entry := range record.Inventory {
		sibling.Owned[entry.Key] = entry
	}
	for _, entry := range record.Shared {
		delete(sibling.Owned, entry.Key)
		sibling.Used[entry.Key] = entry
	}
	return sibling, nil
}

// isLeaving says whether an installation goes, and what only it has with it.
func isLeaving(other *kubermaticv1.AddonInstallation) bool {
	return other.DeletionTimestamp != nil && other.Spec.DeletionPolicy != kubermaticv1.DeletionOrphan
}

// rank says whose objects go first: those of core add-ons, then those of the higher version. Versions that can't be compared are
// the same.
func rank(theirs, ours *revision.Record) int {
	if theirs.Core != ours.Core {
		if theirs.Core {
			return 1
		}
		return -1
	}
	a, err := semver.NewVersion(theirs.Version)
	if err != nil {
		return 0
	}
	b, err := semver.NewVersion(ours.Version)
	if err != nil {
		return 0
	}
	return a.Compare(b)
}

// standOf tells what the cache says of the siblings, so that their records are read only where something changed.
func standOf(others []kubermaticv1.AddonInstallation) string {
	var text strings.Builder
	for i := range others {
		other := &others[i]
		fmt.Fprintf(&text, "%s %s %t %t", other.UID, other.Name, other.DeletionTimestamp != nil, isLeaving(other))
		if applied := other.Status.LastApplied; applied != nil {
			fmt.Fprintf(&text, " %s %s", applied.Version, applied.Objects)
		}
		text.WriteString("\n")
	}
	return text.String()
}

// inherit looks whether those whose objects are used still have them, and takes over what they have not any more, or have older
// than we do.
func (r *Reconciler) inherit(ctx context.Context, f *facts) loop.Outcome {
	if !f.record().IsComplete() || len(f.record().Shared) == 0 || f.decision.ShowsDrift {
		return nil
	}
	others, err := r.siblingsOfCluster(ctx, f)
	if err != nil {
		return failed(err)
	}
	stand := standOf(others)
	if stand == f.memory.siblings && !r.surveyDue(f) {
		return nil
	}
	siblings, err := r.siblings(f)(ctx)
	if errors.Is(err, errHandover) {
		return handover()
	}
	if err != nil {
		return failed(err)
	}
	var left []survey.Drift
	for _, entry := range f.record().Shared {
		if !slices.ContainsFunc(siblings, func(sibling ownership.Sibling) bool { return sibling.Keeps(entry) || sibling.Unknown }) {
			left = append(left, survey.Drift{Key: entry.Key, Reason: survey.DriftLeft})
		}
	}
	if outcome := r.repair(ctx, f, left); outcome != nil {
		return outcome
	}
	f.memory.siblings = stand
	return nil
}

// keepShared puts on record which objects of siblings a rollout uses, as soon as that is known: they are ours to take over when the
// others go. What is used no more is pruned, if nobody else has it.
func (r *Reconciler) keepShared(ctx context.Context, f *facts) error {
	record := f.record()
	if slices.EqualFunc(record.Shared, f.progress.Shared, sameUse) {
		return nil
	}
	f.tellShared(record.Shared, f.progress.Shared, f.progress.Inventory)
	left := record.Shared.Without(f.progress.Shared).Without(f.progress.Inventory)
	for i := range left {
		left[i].Owner = ""
	}
	record.Superseded, record.Shared = append(record.Superseded, left...), f.progress.Shared
	err := r.Records.SaveIntent(ctx, f.installation.Namespace, record)
	if err != nil {
		f.memory.doubt()
	}
	return err
}

func sameUse(a, b ownership.Entry) bool {
	return a.Key == b.Key && a.UID == b.UID && a.Owner == b.Owner && a.Content == b.Content
}

// tellShared remembers what is to be told of what is shared since this pass.
func (f *facts) tellShared(before, now, inventory ownership.Inventory) {
	for _, entry := range now {
		if !slices.ContainsFunc(before, func(known ownership.Entry) bool { return known.Key == entry.Key && known.Owner == entry.Owner }) {
			f.shared = append(f.shared, fmt.Sprintf("%s belongs to installation %q of the same add-on, and is used", entry.Key, entry.Owner))
		}
	}
	for _, entry := range inventory {
		if slices.ContainsFunc(before, func(known ownership.Entry) bool { return known.Key == entry.Key }) && entry.UID != "" {
			f.shared = append(f.shared, fmt.Sprintf("%s was shared and belongs to this installation now", entry.Key))
		}
	}
}

// sharedText says in the condition what others have; "" where nothing is shared.
func sharedText(record *revision.Record) string {
	if record == nil || len(record.Shared) == 0 {
		return ""
	}
	first := record.Shared[0]
	text := fmt.Sprintf("%s is shared: it belongs to installation %q of the same add-on", first.Key, first.Owner)
	if more := len(record.Shared) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}
