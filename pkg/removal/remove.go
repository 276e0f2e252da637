package removal

import (
	"context"
	"fmt"
	"slices"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/ownership"
)

// RemoveOptions say what may go.
type RemoveOptions struct {
	Owner ownership.Owner
	// CRDs says whether CustomResourceDefinitions that we created and nobody uses go; "" keeps them.
	CRDs kubermaticv1.CRDRemove
	// Namespace is the target namespace. The Secrets in which Helm keeps a release of ours there don't hold it back.
	Namespace string
	// All has what was there too, and stays for another installation: its CustomResourceDefinitions count for the order.
	All ownership.Inventory
	// KeepNamespaces are namespaces that another installation targets, even if nothing is in them yet.
	KeepNamespaces []string
	// Kept hears of a namespace that we created and that stays, since something else is in it, with the reason; it may be nil.
	Kept func(namespace, why string)
}

// maxBlocked is how many objects the notes of a removal name.
const maxBlocked = 20

type removal struct {
	*deleter
	options RemoveOptions
	// ownGroups are the groups of the CustomResourceDefinitions that the inventory names.
	ownGroups []string
}

// step of a removal: which entries it is about, and how they go. A step begins when nothing is left of the one before.
type step struct {
	about func(removal, ownership.Entry) bool
	// keeps says that an object stays; nil: all go.
	keeps func(removal, context.Context, ownership.Entry) (bool, error)
}

// removalSteps are the steps in their order. The first to be true for an entry is its own.
var removalSteps = []step{
	// What the API server calls for other objects goes first, since its backend is about to go.
	{about: func(_ removal, entry ownership.Entry) bool {
		return calls.StageOf(entry.GroupKind()) == calls.StageGates
	}},
	// Custom resources go while the controller that holds their finalizers still runs.
	{about: removal.isOwnResource},
	{about: func(_ removal, entry ownership.Entry) bool { return !entry.IsFoundation() }},
	{
		about: func(_ removal, entry ownership.Entry) bool { return entry.GroupKind() == ownership.DefinitionGK },
		keeps: removal.keepsDefinition,
	},
	{about: func(_ removal, entry ownership.Entry) bool { return entry.GroupKind() == ownership.NamespaceGK }, keeps: removal.keepsNamespace},
}

// Remove takes the objects of an inventory away, one pass as far as it goes without waiting: webhook configurations and
// APIServices, custom resources of our own CRDs, the rest in reverse order, unused CRDs, the namespaces that we created and
// that hold nothing of anybody. Deletes carry UIDs; an object that is gone or was replaced is done with. It is called again
// with what is left until nothing is; blocked names what holds the removal up, for a deadline of the caller's. An error is a
// call that failed; left is right then as well.
func Remove(
	ctx context.Context, target calls.Target, inventory ownership.Inventory, options RemoveOptions,
) (left ownership.Inventory, blocked []calls.Note, err error) {
	ownGroups := slices.Concat(inventory, options.All).DefinedGroups()
	r := removal{deleter: newDeleter(target, options.Owner), options: options, ownGroups: ownGroups}
	left = slices.DeleteFunc(slices.Clone(inventory), func(entry ownership.Entry) bool { return entry.Orphan })
	done := map[ownership.Key]bool{}
	for at, step := range removalSteps {
		var now ownership.Inventory
		for _, entry := range left {
			if r.stepOf(entry) == at {
				now = append(now, entry)
			}
		}
		remaining, err := r.run(ctx, step, now)
		for _, entry := range now {
			done[entry.Key] = true
		}
		for _, one := range remaining {
			delete(done, one.entry.Key)
		}
		left = slices.DeleteFunc(left, func(entry ownership.Entry) bool { return done[entry.Key] })
		if err != nil || len(remaining) > 0 {
			return withUIDs(left, remaining), blockedNotes(remaining), err
		}
	}
	return left, nil, nil
}

func (r removal) stepOf(entry ownership.Entry) int {
	return slices.IndexFunc(removalSteps, func(step step) bool { return step.about(r, entry) })
}

// run takes one step; remaining are the entries whose objects still stand after it.
func (r removal) run(ctx context.Context, step step, entries ownership.Inventory) (remaining []*presence, err error) {
	seen, err := r.find(ctx, entries)
	if err != nil {
		return presences(entries, true), err
	}
	var going, standing ownership.Inventory
	for _, one := range seen {
		keep := false
		if step.keeps != nil && one.live != nil && one.live.DeletionTimestamp == nil {
			if keep, err = step.keeps(r, ctx, one.entry); err != nil {
				return presences(entries, true), err
			}
		}
		if one.unknown || one.live != nil && !keep {
			going = append(going, one.entry)
			if one.live == nil || one.live.DeletionTimestamp == nil { // what was told to go needs not be told again
				standing = append(standing, one.entry)
			}
		}
	}
	if _, err := r.deleteAll(ctx, standing); err != nil {
		return presences(going, true), err
	}
	after, err := r.find(ctx, going)
	if err != nil {
		return presences(going, true), err
	}
	return slices.DeleteFunc(after, func(one *presence) bool { return one.live == nil && !one.unknown }), nil
}

// withUIDs keeps the UIDs that were found on the way, so that the next pass goes by them.
func withUIDs(left ownership.Inventory, found []*presence) ownership.Inventory {
	seen := make(map[ownership.Key]ownership.Entry, len(found))
	for _, one := range found {
		if _, twice := seen[one.entry.Key]; !twice {
			seen[one.entry.Key] = one.entry
		}
	}
	for i := range left {
		if entry, there := seen[left[i].Key]; there && left[i].UID == "" {
			left[i] = entry
		}
	}
	return left
}

func blockedNotes(remaining []*presence) (notes []calls.Note) {
	for _, one := range remaining {
		if len(notes) == maxBlocked {
			break
		}
		message := fmt.Sprintf("%s can't be looked at: the API server behind its group does not answer: bring that server up, or "+
			"delete its APIService", one.entry.Key)
		if one.live != nil {
			message = fmt.Sprintf("%s is being deleted%s: see what it waits for", one.entry.Key, calls.HeldBy(one.live.Finalizers))
			if len(one.live.Finalizers) > 0 {
				message += ", or take the finalizer off"
			}
		}
		notes = append(notes, calls.Note{Key: one.entry.Key, Reason: kubermaticv1.ReasonRemovalBlocked, Message: message})
	}
	return notes
}

// isOwnResource says whether an entry is a custom resource of a CRD of the same add-on.
func (r removal) isOwnResource(entry ownership.Entry) bool {
	return slices.Contains(r.ownGroups, entry.Group) && !entry.IsFoundation()
}

// keepsDefinition says whether a CustomResourceDefinition stays: it is not ours, is to be kept, or holds objects.
func (r removal) keepsDefinition(ctx context.Context, entry ownership.Entry) (bool, error) {
	if !entry.Created || r.options.CRDs != kubermaticv1.CRDRemoveWhenUnused {
		return true, nil
	}
	return r.isInUse(ctx, entry)
}
