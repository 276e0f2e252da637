package removal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// PruneOptions guard a prune.
type PruneOptions struct {
	Owner ownership.Owner
	Heir  Heir
	// Total is the size of the old inventory: pruning more than half of it needs approval.
	Total int
	// Approved is the Approval that was given: of the objects that wait for it, or of all that exist, as for a revision
	// without any object (ADR 88).
	Approved string
	// Many may be pruned without approval; objects that contain other objects or data may not.
	Many bool
	// CRDs says whether CustomResourceDefinitions are pruned; "" keeps them.
	CRDs kubermaticv1.CRDRemove
	// Marked is as in RemoveOptions.
	Marked func(key ownership.Key)
}

// prunedFreely is how many objects may always be pruned at once, regardless of their share.
const prunedFreely = 5

const maxHeldNamed = 10

// Prunable are the entries of the old inventory that the new one lacks.
func Prunable(old, next ownership.Inventory) ownership.Inventory {
	have := next.ByKey()
	var gone ownership.Inventory
	for _, entry := range old {
		if now, found := have[entry.Key]; !found || entry.UID != "" && now.UID != "" && entry.UID != now.UID {
			gone = append(gone, entry)
		}
	}
	return gone
}

// Approval is the hash that approves the removal of exactly these objects, in any order.
func Approval(objects ownership.Inventory) string {
	words := make([]string, 0, len(objects))
	for _, entry := range objects {
		words = append(words, entry.Key.String()+" "+string(entry.UID))
	}
	slices.Sort(words)
	sum := sha256.New()
	for _, word := range words {
		sum.Write([]byte(word + "\n"))
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// Prune deletes objects by UID in reverse order. Namespaces, claims, CRDs with objects, or more than half of
// everything, need approval, for which one note has the hash. Add remaining to the inventory, even with an error.
func Prune(
	ctx context.Context, target calls.Target, objects ownership.Inventory, options PruneOptions,
) (remaining ownership.Inventory, notes []calls.Note, err error) {
	d := newDeleter(target, options.Owner, options.Heir)
	seen, err := d.find(ctx, Pruned(objects, options.CRDs))
	if err != nil {
		return objects, nil, err
	}
	there := existing(seen)
	isApproved := options.Approved != "" && options.Approved == Approval(there)
	there = existing(slices.DeleteFunc(seen, func(one *presence) bool { return one.isMarked(options.Marked) }))
	mass := !options.Many && len(there) > prunedFreely && len(there)*2 > options.Total
	free, held, err := d.split(ctx, there, mass)
	if err != nil {
		return there, nil, err
	}
	if isApproved || options.Approved != "" && (options.Approved == Approval(held) || options.Approved == Approval(there)) {
		free, held = there, nil
	}
	stuck, err := d.deleteAll(ctx, free)
	return append(held, stuck...), approvalNote(held, mass), err
}

// Present are the objects that exist and are ours, as Prune finds them: each with its UID, unless the API server of
// its kind does not answer.
func Present(ctx context.Context, target calls.Target, owner ownership.Owner, objects ownership.Inventory) (ownership.Inventory, error) {
	return newDeleter(target, owner, Heir{}).present(ctx, objects)
}

// Pruned are the objects that a prune would delete.
func Pruned(objects ownership.Inventory, crds kubermaticv1.CRDRemove) ownership.Inventory {
	return slices.DeleteFunc(slices.Clone(objects), func(entry ownership.Entry) bool {
		return entry.Orphan || isKeptKind(entry, crds)
	})
}

func (d *deleter) split(ctx context.Context, objects ownership.Inventory, mass bool) (free, held ownership.Inventory, err error) {
	for _, entry := range objects {
		holds := mass
		if !holds {
			if holds, err = d.holdsMore(ctx, entry); err != nil {
				return nil, nil, err
			}
		}
		if holds {
			held = append(held, entry)
			continue
		}
		free = append(free, entry)
	}
	return free, held, nil
}

// isKeptKind selects Namespaces and CRDs that we did not create, and CRDs to keep.
func isKeptKind(entry ownership.Entry, crds kubermaticv1.CRDRemove) bool {
	switch entry.GroupKind() {
	case ownership.NamespaceGK:
		return entry.UID != "" && !entry.Created
	case ownership.DefinitionGK:
		return entry.UID != "" && !entry.Created || crds != kubermaticv1.CRDRemoveWhenUnused
	}
	return false
}

// approvalNote names all objects; its hash does not change while others are pruned.
func approvalNote(held ownership.Inventory, mass bool) []calls.Note {
	if len(held) == 0 {
		return nil
	}
	why := "their removal would remove other objects too"
	if mass {
		why = fmt.Sprintf("%d objects are more than half of the installation", len(held))
	}
	names := make([]string, len(held))
	for i, entry := range held {
		names[i] = calls.CutText(entry.Key.String())
	}
	return []calls.Note{{Key: held[0].Key, Reason: kubermaticv1.ReasonPruneNeedsApproval, Message: fmt.Sprintf(
		"no longer part of the add-on, and not removed without an approval, since %s: annotate the installation with %s: %s to remove them: %s",
		why, kubermaticv1.AnnotationPruneApproved, Approval(held), text.Names(names, maxHeldNamed))}}
}
