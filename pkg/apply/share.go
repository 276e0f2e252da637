package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// What is of the whole cluster is shared between the installations of one add-on (ADR 40): one owns the object, the others use it.
// Whose it is, and what each wants of it, is what their release records say.

// Sibling is another installation of the same add-on in the same cluster, as its release record has it.
type Sibling struct {
	Name string
	// Rank is above 0 where the sibling's content counts, below 0 where ours does, and 0 where neither goes first.
	Rank int
	// Elder says that it was there before us.
	Elder bool
	// Leaving says that it is being removed, and takes along what nobody else has.
	Leaving bool
	// Foreign says that its record is of another add-on: what it has stays, and nothing is shared anew.
	Foreign bool
	// Unknown says that its record can't be read: it may have anything.
	Unknown bool
	// Objects are what it has, or is about to have, that can be shared: SharedContent by key.
	Objects map[Key]string
	// Owned are the entries of those of its objects that it does not share as another's; Used are those of the others.
	Owned, Used map[Key]Entry
}

// Siblings gives those of an installation.
type Siblings func(ctx context.Context) ([]Sibling, error)

// CanBeShared says whether an object is of the whole cluster. Namespaces are used by whoever names them anyway.
func CanBeShared(key Key) bool { return key.Namespace == "" && key.GroupKind() != namespaceGK }

// SharedContent tells the content of an object but for what says whose it is; two installations share what is equal by it.
func SharedContent(object *unstructured.Unstructured) string {
	bare := object.DeepCopy()
	labels, annotations := bare.GetLabels(), bare.GetAnnotations()
	delete(labels, kubermaticv1.LabelInstallation)
	delete(annotations, helmReleaseAnnotation)
	delete(annotations, helmNamespaceAnnotation)
	bare.SetLabels(labels)
	bare.SetAnnotations(annotations)
	return contentDigest(bare)
}

// has says whether a sibling that does not go has an object, and with which content.
func (s *Sibling) has(key Key) (content string, has bool) {
	content, has = s.Objects[key]
	return content, has && !s.Leaving
}

// Keeps says whether a sibling is the owner of an entry that is shared, and still has the very object, as we can use it.
func (s *Sibling) Keeps(entry Entry) bool {
	content, has := s.Objects[entry.Key]
	owned, owns := s.Owned[entry.Key]
	isSame := owned.UID == "" || owned.UID == entry.UID
	return s.Name == entry.Owner && has && owns && isSame && (s.Rank >= 0 || content == entry.Content)
}

// takesAlong says whether a sibling that goes can take an object of ours with it, since the very object is on its record.
func (s *Sibling) takesAlong(entry Entry) bool {
	known, has := s.Owned[entry.Key]
	if used, uses := s.Used[entry.Key]; uses {
		known, has = used, true
	}
	return has && s.Leaving && known.UID != "" && (entry.UID == "" || entry.UID == known.UID)
}

// siblingsOf are asked for once by a writer.
func (w *writer) siblingsOf(ctx context.Context) ([]Sibling, error) {
	if w.siblings == nil {
		return nil, nil
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	if !w.asked {
		found, err := w.siblings(ctx)
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
	if it.entry.UID == "" || !CanBeShared(it.key) {
		return false, nil
	}
	siblings, err := w.siblingsOf(ctx)
	if err != nil {
		return false, err
	}
	content := SharedContent(it.object)
	for i := range siblings {
		if w.yieldTo(&siblings[i], it, content) {
			return true, nil
		}
	}
	return false, nil
}

func (w *writer) yieldTo(sibling *Sibling, it *item, content string) (settled bool) {
	theirs, has := sibling.has(it.key)
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
		it.refuse(kubermaticv1.ReasonObjectExists, differs(it.key, sibling.Name))
		return true
	}
	return false
}

// use leaves an object to a sibling, and remembers that it is used.
func (w *writer) use(it *item, sibling *Sibling, as Entry) {
	it.done, it.used = true, true
	it.shared = &Entry{
		Key: it.key, Version: it.wanted.Version, UID: as.UID, Content: SharedContent(it.object), Created: as.Created && as.isFoundation(),
		Orphan: it.wanted.Orphan, Owner: sibling.Name,
	}
}

func differs(key Key, sibling string) string {
	return fmt.Sprintf("%s is shared with installation %q of the same add-on, which has it with other content: give both the same version "+
		"and the values that this object is made from, or remove one of the two", key, cutText(sibling))
}

// share decides about an object of a living installation: that of a sibling is used where it is the same or the sibling goes
// first, and taken over where we do. False says that it is none of a sibling's.
func (w *writer) share(ctx context.Context, it *item, live *metav1.PartialObjectMetadata, neighbour string) (settled bool, err error) {
	if !CanBeShared(it.key) {
		return false, nil
	}
	siblings, err := w.siblingsOf(ctx)
	if err != nil {
		return false, err
	}
	at := slices.IndexFunc(siblings, func(sibling Sibling) bool { return sibling.Name == neighbour })
	if at < 0 || siblings[at].Foreign {
		return false, nil
	}
	sibling := &siblings[at]
	theirs, has := sibling.Objects[it.key]
	if owned := sibling.Owned[it.key]; !has || owned.UID != "" && owned.UID != live.UID {
		return false, nil
	}
	created := live.Annotations[kubermaticv1.AnnotationAdopted] == ""
	switch same := theirs == SharedContent(it.object) || isCreateOnly(it.object); {
	case same || sibling.Rank > 0:
		w.use(it, sibling, Entry{Key: it.key, UID: live.UID, Created: created})
	case sibling.Rank == 0:
		it.refuse(kubermaticv1.ReasonObjectExists, differs(it.key, sibling.Name))
	default:
		it.entry.UID, it.entry.Created, it.inherits = live.UID, created, true
	}
	return true, nil
}

// isInherited says whether an object that exists was shared with us by an installation that is gone: our record names it, or names
// the installation that applied it, which may have made it anew.
func (w *writer) isInherited(it *item, live *metav1.PartialObjectMetadata) bool {
	known, found := w.shared[it.key]
	former := Owner{ClusterUID: w.owner.ClusterUID, Installation: known.Owner}
	return found && (known.UID == live.UID || hasManager(live, former.FieldManager()))
}

// inherit makes the fields that other installations applied ours, so that what we do not have goes with the next patch. It holds for
// the object as it was read only.
func (w *writer) inherit(ctx context.Context, client checkedClient, it *item, live *metav1.PartialObjectMetadata) error {
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
		if _, is := installationOf(entry.Manager); !applied || !is {
			kept = append(kept, entry)
			continue
		}
		set, err := readFields(entry.FieldsV1.GetRawBytes())
		if err != nil {
			return nil, misbehaves("the fields of manager %q of %q are no field set", cutText(entry.Manager), live.Name)
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
func sharedOf(items []*item, known map[Key]Entry) (shared Inventory) {
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

// Without leaves out the entries that another inventory has.
func (i Inventory) Without(others Inventory) Inventory {
	theirs := others.byKey()
	return slices.DeleteFunc(slices.Clone(i), func(entry Entry) bool { _, found := theirs[entry.Key]; return found })
}

// Held tells of entries which siblings have too: those stay when we let go of them. Whatever a sibling may have of which nothing can
// be told counts as held.
func (i Inventory) Held(siblings []Sibling) (free, held Inventory) {
	for _, entry := range i {
		isHeld := slices.ContainsFunc(siblings, func(sibling Sibling) bool {
			_, has := sibling.has(entry.Key)
			return has || sibling.Unknown
		})
		if isHeld && CanBeShared(entry.Key) {
			held = append(held, entry)
			continue
		}
		free = append(free, entry)
	}
	return free, held
}

// TakenAlong names the siblings that go as well and can take an object with them.
func TakenAlong(entry Entry, siblings []Sibling) (names []string) {
	for i := range siblings {
		if CanBeShared(entry.Key) && siblings[i].takesAlong(entry) {
			names = append(names, siblings[i].Name)
		}
	}
	return names
}
