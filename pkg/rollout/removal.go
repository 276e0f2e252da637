package rollout

import (
	"fmt"
	"slices"
	"strings"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/text"
)

// Removals of so many installations, or of at most half of what the set has on the seed, need no approval while a cluster of the seed
// keeps the item.
const unguarded = 5

// Removal is an installation that is to go.
type Removal struct {
	// ID tells it from all others that were and will be there: its UID.
	ID string
	// Item that it is of: where no cluster keeps that, it waits for approval whatever the number. Empty: it does not wait for that.
	Item string
	// HasVolumes: it has PersistentVolumeClaims, so it waits for approval whatever the number.
	HasVolumes bool
}

// Holdings are what a set has on a seed, and what it is to have there.
type Holdings struct {
	// Installations of the set.
	Installations int
	// Keep is in how many clusters each item stays, or is to be made.
	Keep map[string]int
}

// RemovalClusters is how many clusters status.removal names.
const RemovalClusters = 10

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
// set has on the seed, those of an item that no cluster keeps (ADR 124), and each for itself if it has
// PersistentVolumeClaims. Removals are those that are not deleted yet; before is how they were guarded
// last, with status.removal as Pending.
//
// A word is a hash over the installations, so it is another one next time. It stays while they
// become fewer, and its count goes down with them: what comes on top of what was shown, or in place
// of it, needs a new word.
func GuardRemovals(removals []Removal, has Holdings, before GuardedRemovals, approved string) GuardedRemovals {
	isMany := len(removals) > unguarded && 2*len(removals) > has.Installations
	var ids []string
	for _, removal := range removals {
		if isMany || removal.HasVolumes || removal.Item != "" && has.Keep[removal.Item] == 0 {
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

// clustersNamed is how many clusters a text about removals names.
const clustersNamed = 5

// WaitingText says which removals wait, in which clusters. Names are some of these, in order; what a seed says may have none.
func WaitingText(count int, names []string) string {
	waits := fmt.Sprintf("%s %s for approval", text.Count(count, "removal"), text.Verb(count, "waits", "wait"))
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "" })
	if len(names) == 0 {
		return waits
	}
	where := strings.Join(names[:min(len(names), clustersNamed)], ", ")
	if len(names) > clustersNamed {
		where += " and others"
	}
	return waits + " in: " + where
}

// removalText says which removals wait on seeds, and how to approve them.
func removalText(of *kubermaticv1.PendingRemoval) string {
	word := of.Word
	if len(word) > wordLength {
		word = "the token in status.removal.word"
	}
	return fmt.Sprintf("%s; annotation %s: %s approves that; the former selector and items undo it",
		WaitingText(int(of.Count), of.Clusters), kubermaticv1.AnnotationRemovalApproved, word)
}

const (
	// wordLength is the longest word of one seed, and wordsLength what the words of all take together, in bytes: those beyond are
	// shown once others are done.
	wordLength, wordsLength = 64, 1024
)

// isWord says whether a seed's word is one that annotation removal-approved can have among others.
func isWord(word string) bool {
	return word != "" && len(word) <= wordLength && strings.Trim(word, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// Removal sums up what waits on the seeds that count, with the words of all of them. Each is approved by its own (Approves), so a
// seed that shows another word again and again takes no approval from others. What waits on a seed that does not count is not shown.
func (f *Fleet) Removal() *kubermaticv1.PendingRemoval {
	var words, clusters []string
	count, length := int64(0), 0
	for _, row := range slices.SortedFunc(slices.Values(f.Counted), func(a, b Row) int { return strings.Compare(a.Seed, b.Seed) }) {
		if row.Removal == nil || !isWord(row.Removal.Word) || length+len(row.Removal.Word) > wordsLength {
			continue
		}
		length += len(row.Removal.Word) + len(",")
		words = append(words, row.Removal.Word)
		count += max(int64(row.Removal.Count), 0)
		clusters = append(clusters, row.Removal.Clusters...)
	}
	if len(words) == 0 {
		return nil
	}
	return &kubermaticv1.PendingRemoval{
		Word: strings.Join(words, ","), Count: int32(min(count, maxCount)), Clusters: clusters[:min(len(clusters), RemovalClusters)],
	}
}

// Approves says whether annotation removal-approved of a set on the master has the word of a seed.
func Approves(annotation, word string) bool {
	return isWord(word) && slices.Contains(strings.Split(annotation, ","), word)
}
