package rollout

import (
	"fmt"
	"slices"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Removals of so many installations, and of no more than half of what the set has on the seed, wait
// for nobody.
const unguarded = 5

// Removal is an installation that is to go.
type Removal struct {
	// ID tells it from all others that were and will be there: its UID.
	ID string
	// HasVolumes: it has PersistentVolumeClaims, so it waits for approval whatever the number.
	HasVolumes bool
}

// GuardedRemovals is what may go, and what waits.
type GuardedRemovals struct {
	// Waiting are the IDs of installations that are not to be removed now.
	Waiting map[string]bool
	// Pending is for status.removal: what annotation removal-approved covers, approved or not. It
	// is nil when nothing needs approval.
	Pending *kubermaticv1.PendingRemoval
	// Covered are the IDs of those that the word covers; nil: not known, as of what an earlier process
	// showed.
	Covered map[string]bool
}

// GuardRemovals holds removals back until annotation removal-approved has the word in the status.
// They need that if they are more than five and more than half of all the installations that the
// set has on the seed, and each for itself if it has PersistentVolumeClaims. Removals are those
// that are not deleted yet; before is how they were guarded last, with status.removal as Pending.
//
// A word is a hash over the installations, so it is another one next time. It stays while they
// become fewer, and its count goes down with them: what comes on top of what was shown, or in place
// of it, needs a new word.
func GuardRemovals(removals []Removal, has int, before GuardedRemovals, approved string) GuardedRemovals {
	isMany := len(removals) > unguarded && 2*len(removals) > has
	var ids []string
	for _, removal := range removals {
		if isMany || removal.HasVolumes {
			ids = append(ids, removal.ID)
		}
	}
	if len(ids) == 0 {
		return GuardedRemovals{}
	}
	pending := &kubermaticv1.PendingRemoval{Count: int32(len(ids))}
	if before.covers(ids) {
		pending.Word = before.Pending.Word
	} else {
		slices.Sort(ids)
		pending.Word = fmt.Sprintf("%d-%s", len(ids), digestOf(ids))
	}
	guarded := GuardedRemovals{Pending: pending, Covered: make(map[string]bool, len(ids))}
	for _, id := range ids {
		guarded.Covered[id] = true
	}
	if approved != pending.Word {
		guarded.Waiting = guarded.Covered
	}
	return guarded
}

// covers says whether the word that was shown stands for these removals too.
func (g *GuardedRemovals) covers(ids []string) bool {
	if g.Pending == nil || g.Pending.Word == "" || int(g.Pending.Count) < len(ids) {
		return false
	}
	return g.Covered == nil || !slices.ContainsFunc(ids, func(id string) bool { return !g.Covered[id] })
}

// Removal sums up what waits on the seeds that count: the word of the one that has something, or
// one for all of them. With it in annotation removal-approved of the set, the distributor writes
// the own word of each of these seeds to its copy. What waits on a seed that does not count is not
// shown, so it is not approved.
func (f *Fleet) Removal() *kubermaticv1.PendingRemoval {
	rows := f.Counted
	var words []string
	var one *kubermaticv1.PendingRemoval
	count := int64(0)
	for i := range rows {
		if removal := rows[i].Removal; removal != nil && removal.Word != "" && fit(removal.Word, 64) == removal.Word {
			one = removal
			words = append(words, rows[i].Seed+"="+removal.Word)
			count += max(int64(removal.Count), 0)
		}
	}
	switch len(words) {
	case 0:
		return nil
	case 1:
		return one.DeepCopy()
	}
	slices.Sort(words) // without the count, which goes down while the word stays
	return &kubermaticv1.PendingRemoval{Word: "seeds-" + digestOf(words), Count: int32(min(count, maxCount))}
}
