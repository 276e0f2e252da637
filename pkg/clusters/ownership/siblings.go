package ownership

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Sibling is another installation of the same add-on and cluster, from its release record.
type Sibling struct {
	Name string
	// Rank is above 0 if the sibling's content counts, below 0 if ours does, 0 for neither.
	Rank  int
	Elder bool
	// Leaving says that it is being removed, with the objects that only it has.
	Leaving bool
	// Foreign says that its record is of another add-on: it keeps its objects, and no longer shares any.
	Foreign bool
	// Unknown says that its record can't be read: it may have anything.
	Unknown bool
	// Knows says that its record names us: objects that it has or plans pass to it when we leave.
	Knows bool
	// Objects are its objects that can be shared, also planned ones: SharedContent by key.
	Objects map[Key]string
	// Owned are the entries of objects that it owns, or still has to prune; Used are the entries of objects that others
	// own.
	Owned, Used map[Key]Entry
}

// Siblings reads the siblings of an installation.
type Siblings func(ctx context.Context) ([]Sibling, error)

// Neighbours are the other installations of a cluster, as the seed knows them. All may be nil.
type Neighbours struct {
	Siblings Siblings
	// Known are the IDs of the siblings that the record of the installation names.
	Known []string
	// GaveUp says, by its record, whether an existing installation no longer has an object.
	GaveUp func(ctx context.Context, name string, key Key) (bool, error)
}

// CanBeShared says whether an object is cluster-scoped. All may use any Namespace.
func CanBeShared(key Key) bool { return key.Namespace == "" && key.GroupKind() != NamespaceGK }

// SharedContent is the content without an owner's marks; objects with equal content are shared.
func SharedContent(object *unstructured.Unstructured) string {
	bare := object.DeepCopy()
	labels, annotations := bare.GetLabels(), bare.GetAnnotations()
	delete(labels, kubermaticv1.LabelInstallation)
	delete(annotations, HelmReleaseAnnotation)
	delete(annotations, HelmNamespaceAnnotation)
	bare.SetLabels(labels)
	bare.SetAnnotations(annotations)
	return ContentDigest(bare)
}

// Has returns the content of an object of a sibling that is not being removed.
func (s *Sibling) Has(key Key) (content string, has bool) {
	content, has = s.Objects[key]
	return content, has && !s.Leaving
}

// StillOwns says whether a sibling still owns the object of a shared entry, as we can use it.
func (s *Sibling) StillOwns(entry Entry) bool {
	content, has := s.Objects[entry.Key]
	owned, owns := s.Owned[entry.Key]
	isSame := owned.UID == "" || owned.UID == entry.UID
	return s.Name == entry.Owner && owns && isSame && (!has || s.Rank >= 0 || content == entry.Content)
}

// inherits says whether the object of an entry passes to a sibling when its owner leaves it: Of then answers Ours or
// Inherited to the sibling. Otherwise the object would have no owner.
func (s *Sibling) inherits(entry Entry) bool {
	used, uses := s.Used[entry.Key]
	_, plans := s.Objects[entry.Key]
	isSame := entry.UID != "" && (used.UID == entry.UID || s.Owned[entry.Key].UID == entry.UID)
	takesOver := s.Knows && (plans || uses) && !needsServer(entry.Key)
	return s.Unknown || !s.Leaving && (isSame || takesOver)
}

// needsServer says whether an object sends requests to a server of its owner. Without that server it refuses objects that others
// need first, such as the Namespace of a sibling: a sibling that does not use it yet creates its own.
func needsServer(key Key) bool {
	switch key.Group {
	case "admissionregistration.k8s.io":
		return key.Kind == "ValidatingWebhookConfiguration" || key.Kind == "MutatingWebhookConfiguration"
	case "apiregistration.k8s.io":
		return key.Kind == "APIService"
	default:
		return false
	}
}

// removes says whether a sibling's removal deletes the object of our entry.
func (s *Sibling) removes(entry Entry) bool {
	known, has := s.Owned[entry.Key]
	if used, uses := s.Used[entry.Key]; uses {
		known, has = used, true
	}
	return has && s.Leaving && known.UID != "" && (entry.UID == "" || entry.UID == known.UID)
}

// SplitShared separates entries that pass to siblings when their owner leaves them: those stay when it removes its
// own.
func (i Inventory) SplitShared(siblings []Sibling) (free, held Inventory) {
	for _, entry := range i {
		isHeld := slices.ContainsFunc(siblings, func(sibling Sibling) bool { return sibling.inherits(entry) })
		if isHeld && CanBeShared(entry.Key) {
			held = append(held, entry)
			continue
		}
		free = append(free, entry)
	}
	return free, held
}

// RemovedWith names the siblings whose removal can delete an object.
func RemovedWith(entry Entry, siblings []Sibling) (names []string) {
	for i := range siblings {
		if CanBeShared(entry.Key) && siblings[i].removes(entry) {
			names = append(names, siblings[i].Name)
		}
	}
	return names
}
