package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/fieldsets"
	"github.com/trellis-addons/trellis/pkg/ownership"
)

// siblingsOf are asked for once by a writer.
func (w *writer) siblingsOf(ctx context.Context) ([]ownership.Sibling, error) {
	if w.Siblings == nil {
		return nil, nil
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	if !w.asked {
		found, err := w.Siblings(ctx)
		if err != nil {
			return nil, err
		}
		w.found, w.asked = found, true
	}
	return w.found, nil
}

// yield leaves an object that is ours by the record to a sibling, where that goes first; the same content stays with the
// one that has it. An owner does not change what a sibling of the same rank has otherwise.
func (w *writer) yield(ctx context.Context, it *item) (settled bool, err error) {
	if it.entry.UID == "" || !ownership.CanBeShared(it.key) {
		return false, nil
	}
	siblings, err := w.siblingsOf(ctx)
	if err != nil {
		return false, err
	}
	content := ownership.SharedContent(it.object)
	for i := range siblings {
		if w.yieldTo(&siblings[i], it, content) {
			return true, nil
		}
	}
	return false, nil
}

func (w *writer) yieldTo(sibling *ownership.Sibling, it *item, content string) (settled bool) {
	theirs, has := sibling.Has(it.key)
	if !has || sibling.Foreign {
		return false
	}
	also, same := sibling.Owned[it.key], theirs == content || isCreateOnly(it.object)
	owns := also.UID == it.entry.UID
	it.kept = it.kept && !owns // what both wrote may be as either wants it
	switch {
	case sibling.Rank > 0 && (!same || owns), sibling.Rank == 0 && same && owns && sibling.Elder:
		w.use(it, sibling, it.entry)
		return true
	case sibling.Rank == 0 && !same && it.entry.Content != it.wanted.Content:
		it.refuse(kubermaticv1.ReasonObjectExists, differs(it.key, sibling.Name)+", or remove that installation")
		return true
	}
	return false
}

// use leaves an object to a sibling, and remembers that it is used.
func (w *writer) use(it *item, sibling *ownership.Sibling, as ownership.Entry) {
	it.done, it.used = true, true
	it.shared = &ownership.Entry{
		Key: it.key, Version: it.wanted.Version, UID: as.UID, Content: ownership.SharedContent(it.object),
		Created: as.Created && as.IsFoundation(), Orphan: it.wanted.Orphan, Owner: sibling.Name,
	}
}

func differs(key ownership.Key, sibling string) string {
	return fmt.Sprintf("%s is shared with installation %q of the same add-on, which has it with other content: give both the same version "+
		"and the values that this object is made from", key, calls.CutText(sibling))
}

// ifOwnerGoes says that an object stays when its owner is removed, and that a sibling takes it only when told to.
func ifOwnerGoes(owner string) string {
	return fmt.Sprintf("where %q is removed instead, the object stays, and annotation %s=true on this one takes it",
		calls.CutText(owner), kubermaticv1.AnnotationAdopt)
}

// share decides about an object of a living installation: that of a sibling is used where it is the same or the sibling goes
// first, and taken over where we do. False says that it is none of a sibling's.
func (w *writer) share(
	ctx context.Context, it *item, live *metav1.PartialObjectMetadata, found ownership.Ownership,
) (settled bool, err error) {
	if !ownership.CanBeShared(it.key) {
		return false, nil
	}
	siblings, err := w.siblingsOf(ctx)
	if err != nil {
		return false, err
	}
	at := slices.IndexFunc(siblings, func(sibling ownership.Sibling) bool { return sibling.Name == found.OtherName })
	if at < 0 || siblings[at].Foreign {
		return false, nil
	}
	sibling := &siblings[at]
	theirs, has := sibling.Objects[it.key]
	if owned := sibling.Owned[it.key]; !has || owned.UID != "" && owned.UID != live.UID {
		return false, nil
	}
	created := !found.WasAdopted()
	switch same := theirs == ownership.SharedContent(it.object) || isCreateOnly(it.object); {
	case same || sibling.Rank > 0:
		w.use(it, sibling, ownership.Entry{Key: it.key, UID: live.UID, Created: created})
	case sibling.Rank == 0:
		it.refuse(kubermaticv1.ReasonObjectExists, differs(it.key, sibling.Name)+", or remove this installation; "+ifOwnerGoes(sibling.Name))
	default:
		it.entry.UID, it.entry.Created, it.inherits = live.UID, created, true
	}
	return true, nil
}

// inherit makes the fields that other installations applied ours, so that what we do not have goes with the next patch. It holds for
// the object as it was read only.
func (w *writer) inherit(ctx context.Context, client calls.Client, it *item, live *metav1.PartialObjectMetadata) error {
	patch, err := inheritance(live, w.owner.FieldManager())
	if err != nil || patch == nil {
		return err
	}
	if _, err = client.Patch(ctx, it.key.Name, types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("taking over %q: %w", it.key, err)
	}
	return nil
}

// inheritance is the JSON patch that puts one entry of ours in place of those of all installations; nil where there is no other's.
func inheritance(live *metav1.PartialObjectMetadata, manager string) ([]byte, error) {
	var kept []metav1.ManagedFieldsEntry
	var ours *metav1.ManagedFieldsEntry
	var sets []*fieldpath.Set
	others := false
	for _, entry := range live.ManagedFields {
		applied := entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" && entry.FieldsV1 != nil
		if _, is := ownership.InstallationOf(entry.Manager); !applied || !is {
			kept = append(kept, entry)
			continue
		}
		set, err := fieldsets.Read(entry.FieldsV1.GetRawBytes())
		if err != nil {
			return nil, calls.Misbehaves("the fields of manager %q of %q are no field set", calls.CutText(entry.Manager), live.Name)
		}
		others = others || entry.Manager != manager
		if ours == nil || ours.APIVersion == entry.APIVersion {
			sets = append(sets, set)
		}
		if ours == nil {
			first := entry
			ours = &first
		}
	}
	if !others {
		return nil, nil
	}
	text, err := union(sets).ToJSON()
	if err != nil {
		return nil, fmt.Errorf("encoding the fields of %q: %w", live.Name, err)
	}
	ours.Manager, ours.FieldsV1 = manager, metav1.NewFieldsV1(string(text))
	return json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": append(kept, *ours)},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": live.ResourceVersion},
	})
}

// union of any number of sets, by halves: what a user cluster says can have many.
func union(sets []*fieldpath.Set) *fieldpath.Set {
	if len(sets) == 1 {
		return sets[0]
	}
	half := len(sets) / 2
	return union(sets[:half]).Union(union(sets[half:]))
}

// sharedOf are the entries of what items use of siblings; of those that were not reached, what was known before.
func sharedOf(items []*item, known map[ownership.Key]ownership.Entry) (shared ownership.Inventory) {
	for _, it := range items {
		before, was := known[it.key]
		switch {
		case it.shared != nil:
			shared = append(shared, *it.shared)
		case was && !it.done && it.entry.UID == "":
			shared = append(shared, before)
		}
	}
	return shared
}
