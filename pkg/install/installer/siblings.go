package installer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/util/sets"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/install/removal"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/pkg/install/survey"
)

// siblings are the other installations of the add-on, or of the one that the record had before.
func (p *Run) siblings(ctx context.Context) ([]ownership.Sibling, error) {
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

// recordSiblings records each sibling before an object of it is used, or awaited: a removed sibling leaves objects to
// those whose record names it. errNewSibling says that one was new, and the next reconciliation continues.
func (p *Run) recordSiblings(ctx context.Context) error {
	record := p.Record()
	if record.Unreadable() != nil {
		return nil //nolint:nilerr // a record that can't be read is not written
	}
	others, err := p.others(ctx)
	if err != nil {
		return err
	}
	known := p.siblingIDs(others, record.Addon, record.Siblings)
	if len(sets.New(known...).Difference(sets.New(record.Siblings...))) == 0 {
		return nil
	}
	if err := p.amend(ctx, func(amended *revision.Record) { amended.Siblings = known }); err != nil {
		return &unsavedError{err}
	}
	return errNewSibling
}

// unsavedError is a failed save of a record among calls to the user cluster, which did not cause it.
type unsavedError struct{ cause error }

func (e *unsavedError) Error() string { return e.cause.Error() }

func (e *unsavedError) Unwrap() error { return e.cause }

// unsaved is the outcome of such an error; nil for other errors.
func (p *Run) unsaved(err error) *loop.Outcome {
	if failed, ok := errors.AsType[*unsavedError](err); ok {
		return p.recordUnknown(failed.cause)
	}
	return nil
}

// nameSiblings records the add-on's other installations in an intent, if it has objects that they can leave to it.
func (p *Run) nameSiblings(ctx context.Context, intent *revision.Record) error {
	known := intent.Siblings
	if intent.Siblings = nil; len(intent.Shared) == 0 && !canBeShared(onRecord(intent)) {
		return nil
	}
	others, err := p.Seed.Others(ctx)
	if err != nil {
		return err
	}
	intent.Siblings = p.siblingIDs(others, intent.Addon, known)
	return nil
}

// siblingIDs are the IDs of an add-on's other installations, and of known ones that no longer exist.
func (p *Run) siblingIDs(others []Other, addon string, known []string) (ids []string) {
	for _, other := range others {
		if other.Addon == addon {
			ids = append(ids, ownership.Owner{ClusterUID: p.Owner.ClusterUID, Installation: other.Name}.ID())
		}
	}
	for _, id := range known {
		if !slices.Contains(ids, id) && p.nameOf()(id) == "" {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (p *Run) heir() removal.Heir {
	return removal.Heir{Left: p.Record().Siblings, NameOf: p.nameOf()}
}

// neighbours are the other installations of the cluster. Each record is read once, when it is needed.
func (p *Run) neighbours() ownership.Neighbours {
	var lock sync.Mutex
	records := map[string]*revision.Record{}
	siblings := func(ctx context.Context) ([]ownership.Sibling, error) {
		if err := p.recordSiblings(ctx); err != nil {
			return nil, err
		}
		return p.siblings(ctx)
	}
	gaveUp := func(ctx context.Context, name string, key ownership.Key) (bool, error) {
		lock.Lock()
		defer lock.Unlock()
		record, isRead := records[name]
		if !isRead {
			var err error
			record, err = p.recordOf(ctx, Other{Name: name})
			if _, damaged := errors.AsType[*revision.DamagedError](err); err != nil && !damaged {
				return false, err
			}
			records[name] = record
		}
		return record != nil && record.Skipped == 0 && !record.Has(key), nil
	}
	return ownership.Neighbours{Siblings: siblings, Known: p.Record().Siblings, GaveUp: gaveUp}
}

// others are the installations of the cluster that may have objects in common with this one.
func (p *Run) others(ctx context.Context) ([]Other, error) {
	addons := []string{p.Asked.Addon}
	if record := p.Record(); record != nil {
		addons = append(addons, record.Addon, record.PreviousAddon)
	}
	others, err := p.Seed.Others(ctx)
	return slices.DeleteFunc(others, func(other Other) bool { return !slices.Contains(addons, other.Addon) }), err
}

func (p *Run) sibling(ctx context.Context, other Other) (ownership.Sibling, error) {
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
	sibling.Knows = slices.Contains(record.Siblings, p.Owner.ID())
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
	for _, entry := range onRecord(record) {
		sibling.Owned[entry.Key] = entry
	}
	for _, entry := range record.Shared {
		delete(sibling.Owned, entry.Key)
		sibling.Used[entry.Key] = entry
	}
	return sibling, nil
}

func (p *Run) recordOf(ctx context.Context, other Other) (*revision.Record, error) {
	return p.installer.Reads.Load(ctx, p.Namespace, ownership.Owner{ClusterUID: p.Owner.ClusterUID, Installation: other.Name})
}

// rank says whose objects have priority: those of core add-ons, then those of the higher version. Versions that can't
// be compared are equal.
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

// AdoptShared finds out whether the owners of used objects still have them, and adopts those that they no longer have,
// or have in an older version than ours.
func (p *Run) AdoptShared(ctx context.Context) *loop.Outcome {
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

// recordShared records which objects of siblings a rollout uses, as soon as that is known: we may adopt them when the
// siblings are removed. Objects that are no longer used are pruned, if no sibling has them.
func (p *Run) recordShared(ctx context.Context) *loop.Outcome {
	record := p.Record()
	if record == nil || slices.EqualFunc(record.Shared, p.Progress.Shared, sameUse) {
		return nil // without a record the state of hooks could not be saved: the next reconciliation reads the record, and finds the same
	}
	p.reportShared(record.Shared, p.Progress.Shared, p.Progress.Inventory)
	left := record.Shared.Without(p.Progress.Shared).Without(p.Progress.Inventory)
	for i := range left {
		left[i].Owner = ""
	}
	record.Superseded, record.Shared = append(record.Superseded, left...), p.Progress.Shared
	if err := p.save(ctx, record); err != nil {
		return p.recordUnknown(err)
	}
	return nil
}

func sameUse(a, b ownership.Entry) bool {
	return a.Key == b.Key && a.UID == b.UID && a.Owner == b.Owner && a.Content == b.Content
}

// reportShared stores the messages about sharing that began or ended in this reconciliation.
func (p *Run) reportShared(before, now, inventory ownership.Inventory) {
	for _, entry := range now {
		if !slices.ContainsFunc(before, func(known ownership.Entry) bool { return known.Key == entry.Key && known.Owner == entry.Owner }) {
			p.Shared = append(p.Shared, fmt.Sprintf("%s is shared now: it belongs to installation %q of the same add-on", entry.Key, entry.Owner))
		}
	}
	for _, entry := range inventory {
		if slices.ContainsFunc(before, func(known ownership.Entry) bool { return known.Key == entry.Key }) && entry.UID != "" {
			p.Shared = append(p.Shared, fmt.Sprintf("%s is no longer shared: it belongs to this installation now", entry.Key))
		}
	}
}

// errHandover says that an installation of the add-on is being removed, by a reconciliation that may not know of this
// one.
var errHandover = errors.New("another installation of the add-on is being removed")

// errNewSibling says that another installation of the add-on was not on record yet.
var errNewSibling = errors.New("another installation of the add-on has no release record yet")

// handover is the wait for another installation of the add-on; nil for other errors.
func handover(err error) *loop.Outcome {
	then := ": Trellis waits until it is removed, and then checks whether both installations have the same objects"
	found := errHandover
	switch {
	case errors.Is(err, errHandover):
	case errors.Is(err, errNewSibling):
		found, then = errNewSibling, ": Trellis waits for the record, and then checks whether both installations have the same objects"
	default:
		return nil
	}
	return waitToApply(v1.ReasonWaitingForStage, found.Error()+then, removalRecheck)
}

// handovers counts the reconciliations in each cluster that remove objects which may be shared, or a namespace. They
// may not see an installation whose intent was recorded meanwhile; later ones do.
type handovers struct {
	mutex sync.Mutex
	runs  map[target.Ref]int
}

// begin counts a reconciliation until end is called.
func (h *handovers) begin(cluster target.Ref) (end func()) {
	h.count(cluster, 1)
	return func() { h.count(cluster, -1) }
}

func (h *handovers) count(cluster target.Ref, change int) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.runs == nil {
		h.runs = map[target.Ref]int{}
	}
	if h.runs[cluster] += change; h.runs[cluster] == 0 {
		delete(h.runs, cluster)
	}
}

func (h *handovers) underWay(cluster target.Ref) bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.runs[cluster] > 0
}

// prunable are the superseded objects to prune: without those that a hook owns, and those that siblings have.
func (p *Run) prunable(ctx context.Context) (ownership.Inventory, error) {
	return p.unshared(ctx, p.Record().WithoutHooked(p.Record().Superseded))
}

// unshared are the objects that no sibling has.
func (p *Run) unshared(ctx context.Context, objects ownership.Inventory) (ownership.Inventory, error) {
	if !canBeShared(objects) {
		return objects, nil
	}
	siblings, err := p.siblings(ctx)
	free, _ := objects.SplitShared(siblings)
	return free, err
}

// forgetting is the key in handovers for an installation that deletes its records.
func (p *Run) forgetting(installation string) target.Ref {
	ref := p.Cluster
	ref.Name += "/" + installation
	return ref
}

func canBeShared(objects ownership.Inventory) bool {
	return slices.ContainsFunc(objects, func(entry ownership.Entry) bool { return ownership.CanBeShared(entry.Key) })
}

// removable are the objects to remove with an installation: those that it has, or used of siblings, unless a remaining
// sibling has them. If several are removed together, the last by name removes their shared objects, once the others are
// gone; waits names one of these, or one that is leaving its objects right now.
func (p *Run) removable(ctx context.Context) (objects ownership.Inventory, waits string, err error) {
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
	free, held := objects.SplitShared(siblings)
	p.leaves, objects = held, nil
	for _, entry := range free {
		others := ownership.RemovedWith(entry, siblings)
		if len(others) == 0 {
			objects = append(objects, entry)
			continue
		}
		if slices.Max(others) < p.Owner.Installation {
			waits = others[0]
		}
		for _, other := range others {
			if p.installer.handovers.underWay(p.forgetting(other)) { // it may have left the object to this installation
				waits = other
			}
		}
	}
	return objects, waits, nil
}
