package rollout

import (
	"fmt"
	"slices"
	"strings"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
)

// unguarded is the number of removals that need no approval while a cluster of the seed keeps the item. More need
// none if they are at most half of the set's installations on the seed.
const unguarded = 5

// Removal is an installation that will be removed.
type Removal struct {
	// ID distinguishes it from all earlier and later ones: its UID.
	ID string
	// Item is the item of the installation. If no cluster keeps the item, the removal waits for approval, regardless of
	// the number of removals. Empty: the removal does not wait for this reason.
	Item string
	// HasVolumes: it has PersistentVolumeClaims, so the removal waits for approval, regardless of the number.
	HasVolumes bool
}

// Holdings are the present and the future installations of a set on a seed.
type Holdings struct {
	// Installations is the number of the set's installations.
	Installations int
	// Keep is the number of clusters in which each item stays, or will be created.
	Keep map[string]int
}

// RemovalClusters is the maximum number of clusters in status.removal.
const RemovalClusters = 10

// GuardedRemovals has the removals that wait, and their approval.
type GuardedRemovals struct {
	// Waiting are the IDs of installations that must not be removed now.
	Waiting map[string]bool
	// Pending is for status.removal: the removals that annotation removal-approved covers, approved or not. It is nil
	// when nothing needs approval.
	Pending *kubermaticv1.PendingRemoval
	// Covered are the IDs of the removals that the token covers; nil if unknown, as for the status of an earlier
	// process.
	Covered map[string]bool
}

// GuardRemovals delays removals until annotation removal-approved has the token of the status. These removals need
// approval: more than five that are also more than half of the set's installations on the seed, all removals of an item
// that no cluster keeps (ADR 124), and each removal of an installation with PersistentVolumeClaims. Argument removals
// are those that are not deleted yet; before is the last result, with status.removal as Pending.
//
// A token is a hash over the installations, so it differs next time. It stays valid while they become fewer, and its
// count decreases with them: removals in addition to the shown ones, or in place of them, need a new token.
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

// covers reports whether the shown token is valid for these removals too.
func (g *GuardedRemovals) covers(ids []string) bool {
	if g.Pending == nil || g.Pending.Word == "" || int(g.Pending.Count) < len(ids) {
		return false
	}
	return g.Covered == nil || !slices.ContainsFunc(ids, func(id string) bool { return !g.Covered[id] })
}

// clustersNamed is the maximum number of clusters in a text about removals.
const clustersNamed = 5

// WaitingText reports which removals wait, in which clusters. Argument names are some of these, in order; those from
// a seed may be missing.
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

// removalText reports which removals wait on seeds, and how to approve them.
func removalText(of *kubermaticv1.PendingRemoval) string {
	token := of.Word
	if len(token) > tokenLength {
		token = "the token in status.removal.word"
	}
	return fmt.Sprintf("%s; annotation %s: %s approves the removals; to cancel them, restore the previous selector and items",
		WaitingText(int(of.Count), of.Clusters), kubermaticv1.AnnotationRemovalApproved, token)
}

const (
	// tokenLength is the maximal length of a seed's token, and tokensLength that of all tokens together, in bytes: the
	// rest is shown when earlier ones are done.
	tokenLength, tokensLength = 64, 1024
)

// isToken reports whether a seed's token can be one of several in annotation removal-approved.
func isToken(token string) bool {
	return token != "" && len(token) <= tokenLength && strings.Trim(token, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// Removal sums up the waiting removals of the seeds that count, with the tokens of all of them. Each is approved by its own (Approves),
// so a seed that changes its token repeatedly revokes no other approval. Removals of a seed that does not count are not shown.
func (f *Fleet) Removal() *kubermaticv1.PendingRemoval {
	var tokens, clusters []string
	count, length := int64(0), 0
	for _, row := range slices.SortedFunc(slices.Values(f.Counted), func(a, b Row) int { return strings.Compare(a.Seed, b.Seed) }) {
		if row.Removal == nil || !isToken(row.Removal.Word) || length+len(row.Removal.Word) > tokensLength {
			continue
		}
		length += len(row.Removal.Word) + len(",")
		tokens = append(tokens, row.Removal.Word)
		count += max(int64(row.Removal.Count), 0)
		clusters = append(clusters, row.Removal.Clusters...)
	}
	if len(tokens) == 0 {
		return nil
	}
	return &kubermaticv1.PendingRemoval{
		Word: strings.Join(tokens, ","), Count: int32(min(count, maxCount)), Clusters: clusters[:min(len(clusters), RemovalClusters)],
	}
}

// Approves reports whether annotation removal-approved of a set on the master has the token of a seed.
func Approves(annotation, token string) bool {
	return isToken(token) && slices.Contains(strings.Split(annotation, ","), token)
}
