package installer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/Masterminds/semver/v3"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/revision"
	"github.com/trellis-addons/trellis/pkg/survey"
	"github.com/trellis-addons/trellis/pkg/target"
)

// siblings gives the other installations of the add-on, or of the one that the record had before.
func (p *Pass) siblings(ctx context.Context) ([]ownership.Sibling, error) {
	others, err := p.others(ctx)
	if err != nil {
		return nil, err
	}
	leaving := slices.ContainsFunc(others, func(other Other) bool { return other.Leaving })
	if leaving && !p.Asked.IsRemoved() && p.installer.handovers.underWay(p.Cluster) {
		return nil, errHandover
	}
	var found []ownership.Sibling
	for _, other := range others {
		sibling, err := p.sibling(ctx, other)
		if err != nil {
			return nil, err
		}
		found = append(found, sibling)
	}
	return found, nil
}

// others are those of the cluster that may have objects in common with this installation.
func (p *Pass) others(ctx context.Context) ([]Other, error) {
	addons := []string{p.Asked.Addon}
	if record := p.Record(); record != nil {
		addons = append(addons, record.Addon, record.FormerAddon)
	}
	others, err := p.Seed.Others(ctx)
	return slices.DeleteFunc(others, func(other Other) bool { return !slices.Contains(addons, other.Addon) }), err
}

func (p *Pass) sibling(ctx context.Context, other Other) (ownership.Sibling, error) {
	sibling := ownership.Sibling{Name: other.Name, Leaving: other.Leaving, Elder: other.Elder}
	record, err := p.recordOf(ctx, other)
	if _, damaged := errors.AsType[*revision.DamagedError](err); damaged || err == nil && record != nil && record.Skipped > 0 {
		sibling.Unknown = true
		return sibling, nil
	}
	if err != nil || record == nil {
		return sibling, err
	}
	if own := p.Record(); own != nil {
		sibling.Foreign, sibling.Rank = record.Addon != own.Addon, rank(record, own)
	}
	objects, err := revision.DecodeObjects(record.Objects)
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

func (p *Pass) recordOf(ctx context.Context, other Other) (*revision.Record, error) {
	return p.installer.Reads.Load(ctx, p.Namespace, ownership.Owner{ClusterUID: p.Owner.ClusterUID, Installation: other.Name})
}

// rank says whose objects go first: those of core add-ons, then those of the higher version.
// Versions that can't be compared are the same.
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

// AdoptShared finds out whether those whose objects are used still have them, and adopts what they
// have not any more, or have older than we do.
func (p *Pass) AdoptShared(ctx context.Context) *Stop {
	if !p.Decision.Repairs(p.Record()) || len(p.Record().Shared) == 0 {
		return nil
	}
	others, err := p.others(ctx)
	if err != nil {
		return Failed(err)
	}
	fingerprints := make([]string, len(others))
	for i, other := range others {
		fingerprints[i] = other.Fingerprint
	}
	fingerprint := strings.Join(fingerprints, "")
	if fingerprint == p.State.fingerprint && !p.surveyDue() {
		return nil
	}
	siblings, err := p.siblings(ctx)
	if err != nil {
		return Failed(err)
	}
	var left []survey.Drift
	for _, entry := range p.Record().Shared {
		if !slices.ContainsFunc(siblings, func(sibling ownership.Sibling) bool { return sibling.StillOwns(entry) || sibling.Unknown }) {
			left = append(left, survey.Drift{Key: entry.Key, Reason: survey.DriftAbandoned})
		}
	}
	if outcome := p.repair(ctx, left); outcome != nil {
		return outcome
	}
	p.State.fingerprint = fingerprint
	return nil
}

// recordShared puts on record which objects of siblings a rollout uses, as soon as that is known:
// they are ours to adopt when the others go. What is used no more is pruned, if nobody else has
// it.
func (p *Pass) recordShared(ctx context.Context) *Stop {
	record := p.Record()
	if record == nil || slices.EqualFunc(record.Shared, p.Progress.Shared, sameUse) {
		return nil // without a record what hooks did could not be saved: the next pass reads it, and finds the same
	}
	p.reportShared(record.Shared, p.Progress.Shared, p.Progress.Inventory)
	left := record.Shared.Without(p.Progress.Shared).Without(p.Progress.Inventory)
	for i := range left {
		left[i].Owner = ""
	}
	record.Superseded, record.Shared = append(record.Superseded, left...), p.Progress.Shared
	if err := p.save(ctx, record); err != nil {
		return p.doubted(err)
	}
	return nil
}

func sameUse(a, b ownership.Entry) bool {
	return a.Key == b.Key && a.UID == b.UID && a.Owner == b.Owner && a.Content == b.Content
}

// reportShared remembers what is to be said of what is shared since this pass.
func (p *Pass) reportShared(before, now, inventory ownership.Inventory) {
	for _, entry := range now {
		if !slices.ContainsFunc(before, func(known ownership.Entry) bool { return known.Key == entry.Key && known.Owner == entry.Owner }) {
			p.Shared = append(p.Shared, fmt.Sprintf("%s belongs to installation %q of the same add-on, and is used", entry.Key, entry.Owner))
		}
	}
	for _, entry := range inventory {
		if slices.ContainsFunc(before, func(known ownership.Entry) bool { return known.Key == entry.Key }) && entry.UID != "" {
			p.Shared = append(p.Shared, fmt.Sprintf("%s was shared and belongs to this installation now", entry.Key))
		}
	}
}

// errHandover says that an installation of the add-on is just being removed, by a pass that may not
// know of this one.
var errHandover = errors.New("another installation of the add-on is being removed")

func handover() *Stop {
	return &Stop{
		About: AboutApply, Reason: v1.ReasonWaitingForStage, Recheck: removalRecheck,
		Message: "another installation of the add-on is being removed: what both have is compared after that",
	}
}

// handovers knows the clusters of which a pass removes what may be shared, or a namespace. An installation whose
// intent was recorded during it may not be seen by it; the passes after that do.
type handovers struct {
	mutex  sync.Mutex
	passes map[target.Ref]int
}

// begin notes a pass; it is over when end is called.
func (h *handovers) begin(cluster target.Ref) (end func()) {
	h.count(cluster, 1)
	return func() { h.count(cluster, -1) }
}

func (h *handovers) count(cluster target.Ref, change int) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.passes == nil {
		h.passes = map[target.Ref]int{}
	}
	if h.passes[cluster] += change; h.passes[cluster] == 0 {
		delete(h.passes, cluster)
	}
}

func (h *handovers) underWay(cluster target.Ref) bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.passes[cluster] > 0
}

// prunable are the superseded objects that go: neither those that a hook made its own, nor those
// that siblings have.
func (p *Pass) prunable(ctx context.Context) (ownership.Inventory, error) {
	return p.unshared(ctx, p.Record().WithoutHooked(p.Record().Superseded))
}

// unshared are those of the objects that no sibling has.
func (p *Pass) unshared(ctx context.Context, objects ownership.Inventory) (ownership.Inventory, error) {
	if !canBeShared(objects) {
		return objects, nil
	}
	siblings, err := p.siblings(ctx)
	free, _ := objects.SplitShared(siblings)
	return free, err
}

func canBeShared(objects ownership.Inventory) bool {
	return slices.ContainsFunc(objects, func(entry ownership.Entry) bool { return ownership.CanBeShared(entry.Key) })
}

// removable is everything that goes with an installation: what it has, or used of siblings, and no
// sibling has that stays. Of those that go together the last by name takes along what they shared,
// once the others are gone; waits names one of them.
func (p *Pass) removable(ctx context.Context) (objects ownership.Inventory, waits string, err error) {
	record := p.Record()
	objects = onRecord(record)
	if len(record.Shared) == 0 && !canBeShared(objects) {
		return objects, "", nil
	}
	siblings, err := p.siblings(ctx)
	if err != nil {
		return nil, "", err
	}
	objects = objects.Without(record.Shared)
	for _, used := range record.Shared {
		used.Owner = ""
		objects = append(objects, used)
	}
	free, _ := objects.SplitShared(siblings)
	objects = nil
	for _, entry := range free {
		others := ownership.RemovedWith(entry, siblings)
		if len(others) == 0 {
			objects = append(objects, entry)
			continue
		}
		if slices.Max(others) < p.Owner.Installation {
			waits = others[0]
		}
	}
	return objects, waits, nil
}
