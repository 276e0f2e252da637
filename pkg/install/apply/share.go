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
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/fieldsets"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

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

// leaveToSibling leaves an object of our record to a sibling that ranks higher, or that has the same content. Between
// siblings of the same rank, the owner does not change the content.
func (w *writer) leaveToSibling(ctx context.Context, it *item) (decided bool, err error) {
	if it.entry.UID == "" || !ownership.CanBeShared(it.key) {
		return false, nil
	}
	siblings, err := w.siblingsOf(ctx)
	if err != nil {
		return false, err
	}
	content := ownership.SharedContent(it.object)
	for i := range siblings {
		if w.leaveTo(&siblings[i], it, content) {
			return true, nil
		}
	}
	return false, nil
}

func (w *writer) leaveTo(sibling *ownership.Sibling, it *item, content string) (decided bool) {
	theirs, has := sibling.Has(it.key)
	if !has || sibling.Foreign {
		return false
	}
	also, same := sibling.Owned[it.key], theirs == content || isCreateOnly(it.object)
	owns := also.UID == it.entry.UID
	it.unchanged = it.unchanged && !owns // both wrote it, so either content may be there
	switch {
	case sibling.Rank > 0 && (!same || owns), sibling.Rank == 0 && same && owns && sibling.Elder:
		w.use(it, sibling, it.entry)
		return true
	case sibling.Rank == 0 && !same && it.entry.Content != it.wanted.Content:
		it.refuse(kubermaticv1.ReasonObjectExists, contentDiffers(it.key, sibling.Name)+", or remove that installation")
		return true
	}
	return false
}

func (w *writer) use(it *item, sibling *ownership.Sibling, as ownership.Entry) {
	it.done, it.used = true, true
	it.shared = &ownership.Entry{
		Key: it.key, Version: it.wanted.Version, UID: as.UID, Content: ownership.SharedContent(it.object),
		Created: as.Created && as.IsFoundation(), Orphan: it.wanted.Orphan, Owner: sibling.Name,
	}
}

func contentDiffers(key ownership.Key, sibling string) string {
	return fmt.Sprintf("%s is shared with installation %q of the same add-on, which needs other content: give both installations "+
		"the same version, and the same values for this object", key, calls.CutText(sibling))
}

// adopt makes an object ours that another installation left, unless a sibling uses it with other content: then the
// sibling has priority.
func (w *writer) adopt(ctx context.Context, it *item, live *metav1.PartialObjectMetadata, found ownership.Ownership) error {
	shared, isShared := w.shared[it.key]
	if !isShared && ownership.CanBeShared(it.key) {
		siblings, err := w.siblingsOf(ctx)
		if err != nil {
			return err
		}
		content := ownership.SharedContent(it.object)
		for i := range siblings {
			if theirs, has := siblings[i].Has(it.key); has && siblings[i].Used[it.key].UID == live.UID && theirs != content {
				it.refuse(kubermaticv1.ReasonObjectExists, contentDiffers(it.key, siblings[i].Name)+", or remove this installation")
				return nil
			}
		}
	}
	it.entry.UID, it.entry.Created, it.inherits = live.UID, found.IsMade() || isShared && shared.Created, true
	return nil
}

// share decides about an object of a sibling: it is used if the content is equal or the sibling ranks higher, and
// becomes ours if we rank higher. False: it belongs to no sibling.
func (w *writer) share(
	ctx context.Context, it *item, live *metav1.PartialObjectMetadata, found ownership.Ownership,
) (decided bool, err error) {
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
		it.refuse(kubermaticv1.ReasonObjectExists,
			contentDiffers(it.key, sibling.Name)+fmt.Sprintf(", or remove one of the two: if %q is removed, this one adopts the object",
				calls.CutText(sibling.Name)))
	default:
		it.entry.UID, it.entry.Created, it.inherits = live.UID, created, true
	}
	return true, nil
}

// inherit makes the fields that other installations applied ours, so that the next patch removes those that we lack.
// It is valid only for the object as it was read.
func (w *writer) inherit(ctx context.Context, client calls.Client, it *item, live *metav1.PartialObjectMetadata) error {
	patch, err := inheritPatch(live, w.owner.FieldManager())
	if err != nil || patch == nil {
		return err
	}
	if _, err = client.Patch(ctx, it.key.Name, types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("adopting %q: %w", it.key, err)
	}
	return nil
}

// inheritPatch merges the entries of all installations into ours; nil if others have none.
func inheritPatch(live *metav1.PartialObjectMetadata, manager string) ([]byte, error) {
	var rest []metav1.ManagedFieldsEntry
	var ours *metav1.ManagedFieldsEntry
	var sets []*fieldpath.Set
	others := false
	for _, entry := range live.ManagedFields {
		applied := entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" && entry.FieldsV1 != nil
		if _, is := ownership.InstallationOf(entry.Manager); !applied || !is {
			rest = append(rest, entry)
			continue
		}
		set, err := fieldsets.Read(entry.FieldsV1.GetRawBytes())
		if err != nil {
			return nil, calls.Misbehaves("the fields of manager %q of %q are not a field set", calls.CutText(entry.Manager), live.Name)
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
		{"op": "replace", "path": "/metadata/managedFields", "value": append(rest, *ours)},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": live.ResourceVersion},
	})
}

// union merges by halves, since a user cluster can send many sets.
func union(sets []*fieldpath.Set) *fieldpath.Set {
	if len(sets) == 1 {
		return sets[0]
	}
	half := len(sets) / 2
	return union(sets[:half]).Union(union(sets[half:]))
}

// sharedOf returns the entries for used objects of siblings; for items not reached, the known ones.
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
