package apply

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/fieldsets"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// clientSideManagers are tools, by the names that they usually have.
var clientSideManagers = sets.New("kubectl-client-side-apply", "kubectl-create", "kubectl", "helm", "before-first-apply")

// toolMarks are fields that tools set which write as clients. Their writer may apply the object under any name: KKP
// and operators run such tools inside their own programs.
var toolMarks = []fieldpath.Path{
	fieldpath.MakePathOrDie("metadata", "annotations", lastApplied),
	helmMark,
	fieldpath.MakePathOrDie("metadata", "labels", kkpAddonLabel),
}

// helmMark is on every object of a release. Helm writes it as a client up to its third version, and applies it from
// the fourth on.
var helmMark = fieldpath.MakePathOrDie("metadata", "annotations", ownership.HelmReleaseAnnotation)

// kkpAddonLabel is on objects of KKP's own add-ons; its value is their name (pkg/addon of KKP).
const kkpAddonLabel = "kubermatic-addon"

// notContent are fields that no add-on has (cleanMetadata), so that its next patch would remove them: finalizers and
// owners decide about removal. They keep their managers.
var notContent = fieldpath.NewSet(
	fieldpath.MakePathOrDie("metadata", "finalizers"), fieldpath.MakePathOrDie("metadata", "ownerReferences"))

// maxMoved is more than the entries of clients that update in an object: the API server merges those beyond ten into one.
const maxMoved = 30

// writers are entries of managedFields with one name and operation.
type writers struct {
	manager   string
	operation metav1.ManagedFieldsOperationType
}

func writersOf(entry *metav1.ManagedFieldsEntry) writers {
	return writers{entry.Manager, entry.Operation}
}

// tools finds the writers of an adopted object that are tools, by their marks. An installation has marks of Helm too,
// and is not a tool.
func tools(managed []metav1.ManagedFieldsEntry) sets.Set[writers] {
	found := sets.New(writers{"helm", metav1.ManagedFieldsOperationApply})
	for name := range clientSideManagers {
		found.Insert(writers{name, metav1.ManagedFieldsOperationUpdate})
	}
	for i := range managed {
		entry := &managed[i]
		if entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		marks := toolMarks
		if entry.Operation == metav1.ManagedFieldsOperationApply {
			marks = []fieldpath.Path{helmMark}
		}
		if fields := fieldsets.Parse(entry.FieldsV1.GetRawBytes()); slices.ContainsFunc(marks, fields.Has) {
			found.Insert(writersOf(entry))
		}
	}
	return found
}

// moves says whether an entry becomes ours: an entry of a tool, of a manager in adopt-managers, of a hook of ours,
// and with adopt one that a deleted installation left.
func (w *writer) moves(entry *metav1.ManagedFieldsEntry, of sets.Set[writers]) bool {
	id, is := ownership.InstallationOf(entry.Manager)
	switch {
	case entry.Subresource != "" || entry.FieldsV1 == nil || entry.Manager == adoptionManager:
		return false
	case is && id == w.owner.ID():
		return entry.Operation == metav1.ManagedFieldsOperationUpdate
	case is:
		return w.Adopt && w.NameOf != nil && w.NameOf(id) == ""
	}
	return of.Has(writersOf(entry)) || w.Adopt && slices.Contains(w.AdoptManagers, entry.Manager)
}

// dropLastApplied removes kubectl's copy, which is stale now; kubectl's --prune relies on it.
var dropLastApplied = map[string]any{
	"op": "remove", "path": "/metadata/annotations/" + strings.ReplaceAll(lastApplied, "/", "~1"),
}

// adoptionPatch makes entries of managedFields ours, so that the next patch removes fields that we lack; nil if there
// are none. It is valid only for the object as it was read.
func (w *writer) adoptionPatch(live *metav1.PartialObjectMetadata, version string) ([]byte, error) {
	adopted, err := w.split(live)
	if err != nil || len(adopted.moved) == 0 {
		return nil, err
	}
	ours, err := adopted.merged(w.owner.FieldManager(), version)
	if err != nil {
		return nil, fmt.Errorf("encoding the fields of %q: %w", live.Name, err)
	}
	operations := []map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": append(adopted.rest, ours)},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": live.ResourceVersion},
	}
	if _, stale := live.Annotations[lastApplied]; stale {
		operations = append(operations, dropLastApplied)
	}
	return json.Marshal(operations)
}

// adoption has the entries of an object: ours, nil for none; those that become ours with their fields; and the rest.
type adoption struct {
	ours  *metav1.ManagedFieldsEntry
	moved []metav1.ManagedFieldsEntry
	sets  []*fieldpath.Set
	rest  []metav1.ManagedFieldsEntry
}

func (w *writer) split(live *metav1.PartialObjectMetadata) (adopted adoption, err error) {
	of, manager := tools(live.ManagedFields), w.owner.FieldManager()
	for i := range live.ManagedFields {
		entry := &live.ManagedFields[i]
		isOurs := entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
		if isOurs && entry.FieldsV1 != nil {
			adopted.ours = entry
			continue
		}
		if !w.moves(entry, of) {
			adopted.rest = append(adopted.rest, *entry)
			continue
		}
		if err := adopted.move(*entry); err != nil {
			return adoption{}, calls.Misbehaves("the fields of manager %q of %q are not a field set", calls.CutText(entry.Manager), live.Name)
		}
	}
	if len(adopted.moved) > maxMoved {
		return adoption{}, calls.Misbehaves("object %q has fields of %d field managers to adopt, at most %d are supported",
			live.Name, len(adopted.moved), maxMoved)
	}
	return adopted, nil
}

// move makes an entry ours, except for notContent.
func (a *adoption) move(entry metav1.ManagedFieldsEntry) error {
	fields, err := fieldsets.Read(entry.FieldsV1.GetRawBytes())
	if err != nil {
		return err
	}
	content := fields.RecursiveDifference(notContent)
	if left := fields.Difference(content); !left.Empty() {
		text, err := left.ToJSON()
		if err != nil {
			return err
		}
		stays := entry
		stays.FieldsV1 = metav1.NewFieldsV1(string(text))
		a.rest = append(a.rest, stays)
	}
	if !content.Empty() {
		a.moved, a.sets = append(a.moved, entry), append(a.sets, content)
	}
	return nil
}

// merged is our entry with all moved fields. Fields belong to a version of their kind: of an entry with another
// version, they have no manager afterwards.
func (a *adoption) merged(manager, version string) (ours metav1.ManagedFieldsEntry, err error) {
	var all []*fieldpath.Set
	if a.ours != nil {
		fields, err := fieldsets.Read(a.ours.FieldsV1.GetRawBytes())
		if err != nil {
			return ours, err
		}
		ours, all = *a.ours, append(all, fields)
	} else {
		at := slices.IndexFunc(a.moved, func(entry metav1.ManagedFieldsEntry) bool { return entry.APIVersion == version })
		ours = a.moved[max(0, at)]
		ours.Manager, ours.Operation = manager, metav1.ManagedFieldsOperationApply
	}
	for i, fields := range a.sets {
		if a.moved[i].APIVersion == ours.APIVersion {
			all = append(all, fields)
		}
	}
	text, err := union(all).ToJSON()
	ours.FieldsV1 = metav1.NewFieldsV1(string(text))
	return ours, err
}

// managersHint suggests annotation adopt-managers if no known tool wrote an object and it has no known owner.
func managersHint(live *metav1.PartialObjectMetadata, found ownership.Ownership) string {
	of := tools(live.ManagedFields)
	wrote := func(entry metav1.ManagedFieldsEntry) bool { return of.Has(writersOf(&entry)) }
	if found.OtherID != "" || metav1.GetControllerOfNoCopy(live) != nil || slices.ContainsFunc(live.ManagedFields, wrote) {
		return ""
	}
	at := slices.IndexFunc(live.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool { return entry.Subresource == "" })
	if at < 0 {
		return ""
	}
	return fmt.Sprintf(" (and with %s: %q too, if a tool that is no longer used wrote with that name)",
		kubermaticv1.AnnotationAdoptManagers, calls.CutText(live.ManagedFields[at].Manager))
}
