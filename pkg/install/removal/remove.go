package removal

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// RemoveOptions say which objects are removed.
type RemoveOptions struct {
	Owner ownership.Owner
	Heir  Heir
	// CRDs says whether our unused CustomResourceDefinitions are removed; "" keeps them.
	CRDs kubermaticv1.CRDRemove
	// LeftBy is the mark for CustomResourceDefinitions that stay, for later installations; "" for none.
	LeftBy string
	// Namespace is the target namespace. Helm's Secrets of our release don't keep it.
	Namespace string
	// All includes objects that stay for another installation: its CRDs count for the order.
	All            ownership.Inventory
	KeepNamespaces []string
	// Spared are the UIDs of objects that don't keep a namespace, and are deleted with it.
	Spared []types.UID
	// AwaitKinds makes a namespace wait if a kind can't be listed in it; otherwise it stays.
	AwaitKinds bool
	// Explain reads from namespaces that are being deleted why they still exist.
	Explain bool
	// Kept is called with a namespace that we created and that stays, and the reason; it may be nil.
	Kept func(namespace, why string)
	// Marked is called with each object that stays because it has a mark in the user cluster that a manifest could have
	// (ownership.StaysBehind). Nil: marks don't count.
	Marked func(key ownership.Key)
}

const maxBlocked = 20

// ReasonUnlisted is the reason of a note about a namespace in which kinds can't be listed. Another check lists all
// other kinds.
const ReasonUnlisted = "Unlisted"

type removal struct {
	*deleter
	options   RemoveOptions
	ownGroups []string
}

// step of a removal. It begins once the previous step is complete.
type step struct {
	about func(removal, ownership.Entry) bool
	// keeps decides about an object; nil: it is deleted.
	keeps func(removal, context.Context, ownership.Entry) (verdict, error)
}

// verdict on an existing object: it is deleted, or kept, or decided later; until names the awaited condition.
type verdict struct {
	keep  bool
	until string
}

// removalSteps in order. An entry belongs to the first step that is about it; Remove then drops it.
var removalSteps = []step{
	// Webhooks and APIServices are removed before their backend.
	{about: func(_ removal, entry ownership.Entry) bool {
		return calls.StageOf(entry.GroupKind()) == calls.StageGates
	}},
	// Custom resources are removed while the controller for their finalizers still runs.
	{about: removal.isOwnResource},
	{about: func(_ removal, entry ownership.Entry) bool { return !entry.IsFoundation() }},
	{
		about: func(_ removal, entry ownership.Entry) bool { return entry.GroupKind() == ownership.DefinitionGK },
		keeps: removal.keepsDefinition,
	},
	{about: func(_ removal, entry ownership.Entry) bool { return entry.GroupKind() == ownership.NamespaceGK }, keeps: removal.keepsNamespace},
}

// Remove deletes the objects of an inventory, by UID, in the order of removalSteps, as far as possible without waiting.
// Call it again with the rest until that is empty; blocked names the awaited conditions. An error is a failed call;
// rest is valid then, too.
func Remove(
	ctx context.Context, target calls.Target, inventory ownership.Inventory, options RemoveOptions,
) (rest ownership.Inventory, blocked []calls.Note, err error) {
	ownGroups := slices.Concat(inventory, options.All).DefinedGroups()
	r := removal{deleter: newDeleter(target, options.Owner, options.Heir), options: options, ownGroups: ownGroups}
	rest = slices.DeleteFunc(slices.Clone(inventory), func(entry ownership.Entry) bool {
		return entry.Orphan && entry.GroupKind() != ownership.DefinitionGK // definitions are marked as left
	})
	done := map[ownership.Key]bool{}
	for _, step := range removalSteps {
		var now ownership.Inventory
		for _, entry := range rest {
			if step.about(r, entry) {
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
		rest = slices.DeleteFunc(rest, func(entry ownership.Entry) bool { return done[entry.Key] })
		if err != nil || len(remaining) > 0 {
			return withUIDs(rest, remaining), r.blockedNotes(ctx, remaining), err
		}
	}
	return rest, nil, nil
}

// run takes one step; remaining are the entries whose objects still exist after it.
func (r removal) run(ctx context.Context, step step, entries ownership.Inventory) (remaining []*presence, err error) {
	seen, err := r.find(ctx, entries)
	if err != nil {
		return presences(entries, true), err
	}
	var going, staying ownership.Inventory
	for _, one := range seen {
		found, err := r.decide(ctx, step, one)
		if err != nil {
			return presences(entries, true), err
		}
		if one.until = found.until; one.until != "" {
			remaining = append(remaining, one)
			continue
		}
		if found.keep {
			r.markLeft(ctx, one)
			continue
		}
		if one.unknown || one.live != nil {
			going = append(going, one.entry)
			if one.live == nil || one.live.DeletionTimestamp == nil { // is not being deleted yet
				staying = append(staying, one.entry)
			}
		}
	}
	if _, err := r.deleteAll(ctx, staying); err != nil {
		return presences(going, true), err
	}
	after, err := r.find(ctx, going)
	if err != nil {
		return presences(going, true), err
	}
	after = slices.DeleteFunc(after, func(one *presence) bool { return one.live == nil && !one.unknown })
	return append(remaining, after...), nil
}

// decide decides about an object.
func (r removal) decide(ctx context.Context, step step, one *presence) (verdict, error) {
	if one.entry.Orphan || one.isMarked(r.options.Marked) {
		return verdict{keep: true}, nil
	}
	if step.keeps == nil || one.live == nil || one.live.DeletionTimestamp != nil {
		return verdict{}, nil
	}
	return step.keeps(r, ctx, one.entry)
}

// markLeft marks a definition that stays with the add-on that left it. It helps later installations; a refused mark
// delays nothing.
func (r removal) markLeft(ctx context.Context, one *presence) {
	if one.live == nil || one.entry.GroupKind() != ownership.DefinitionGK ||
		one.live.Annotations[kubermaticv1.AnnotationLeftBy] == r.options.LeftBy {
		return
	}
	mark := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:%q}}}`, one.live.UID, kubermaticv1.AnnotationLeftBy, r.options.LeftBy)
	if client, served, err := r.client(ctx, one); err == nil && served {
		_, _ = client.Patch(ctx, one.entry.Name, types.MergePatchType, mark, metav1.PatchOptions{FieldManager: leftManager})
	}
}

// leftManager owns the mark of definitions that are left. The mark outlives the owner's fields.
const leftManager = "addon-installation-left"

func withUIDs(rest ownership.Inventory, found []*presence) ownership.Inventory {
	seen := make(map[ownership.Key]ownership.Entry, len(found))
	for _, one := range found {
		if _, twice := seen[one.entry.Key]; !twice {
			seen[one.entry.Key] = one.entry
		}
	}
	for i := range rest {
		if entry, there := seen[rest[i].Key]; there && rest[i].UID == "" {
			rest[i] = entry
		}
	}
	return rest
}

func (r removal) blockedNotes(ctx context.Context, remaining []*presence) (notes []calls.Note) {
	for _, one := range remaining {
		if len(notes) == maxBlocked {
			break
		}
		note := calls.Note{Key: one.entry.Key, Reason: kubermaticv1.ReasonRemovalBlocked, Message: fmt.Sprintf("%s can't be read: the API "+
			"server of its group does not answer: start that server, or delete its APIService", one.entry.Key)}
		switch {
		case one.until != "":
			note.Reason, note.Message = ReasonUnlisted, one.until
		case one.live != nil:
			note.Message, note.Cause = r.whyGoing(ctx, one), kubermaticv1.ReasonBeingDeleted
		}
		notes = append(notes, note)
	}
	return notes
}

// whyGoing says why an object that is being deleted still exists.
func (r removal) whyGoing(ctx context.Context, one *presence) string {
	message := fmt.Sprintf("%s is being deleted%s", one.entry.Key, calls.HeldBy(one.live.Finalizers))
	if r.options.Explain {
		if why := r.whyEnding(ctx, one.entry); why != "" {
			return message + why
		}
	}
	message += ": check what delays it"
	if len(one.live.Finalizers) > 0 {
		message += ", or remove the finalizer"
	}
	return message
}

func (r removal) isOwnResource(entry ownership.Entry) bool {
	return slices.Contains(r.ownGroups, entry.Group) && !entry.IsFoundation()
}

func (r removal) keepsDefinition(ctx context.Context, entry ownership.Entry) (verdict, error) {
	if !entry.Created || r.options.CRDs != kubermaticv1.CRDRemoveWhenUnused {
		return verdict{keep: true}, nil
	}
	used, err := r.isInUse(ctx, entry)
	return verdict{keep: used}, err
}
