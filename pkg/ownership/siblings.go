package ownership

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
func CanBeShared(key Key) bool { return key.Namespace == "" && key.GroupKind() != NamespaceGK }

// SharedContent tells the content of an object but for what says whose it is; two installations share what is equal by it.
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

// Has says whether a sibling that does not go has an object, and with which content.
func (s *Sibling) Has(key Key) (content string, has bool) {
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

// Held are the entries that siblings have too, or may have: those stay when we remove ours.
func (i Inventory) Held(siblings []Sibling) (free, held Inventory) {
	for _, entry := range i {
		isHeld := slices.ContainsFunc(siblings, func(sibling Sibling) bool {
			_, has := sibling.Has(entry.Key)
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
