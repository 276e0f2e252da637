package catalogue

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/budget"
)

// Weight is what catalogues take on the master and on every seed.
type Weight struct {
	// Versions counts a catalogue without any as one.
	Versions int
	Bytes    int
}

// mostOfAll is what all Custom catalogues together take at most, and mostOfAuthor what those of one author (see Author) take of it: the
// largest repository has 8192 versions.
var (
	mostOfAll    = Weight{Versions: 20_000, Bytes: 64 << 20}
	mostOfAuthor = Weight{Versions: mostOfAll.Versions / 2, Bytes: mostOfAll.Bytes / 2}
)

const (
	addonBytes  = 1 << 10 // an object on each seed
	originBytes = 256     // of a version, in an annotation
	freeBytes   = 4 << 10 // of labels and annotations: a catalogue can be marked where there is no room
)

// Weigh counts a spec as it is written to seeds.
func Weigh(spec *v1.AddonCatalogueSpec) Weight {
	encoded, _ := json.Marshal(spec) // what can't be encoded is invalid
	return weigh(spec, len(encoded))
}

// weigh counts a spec of so many bytes as JSON.
func weigh(spec *v1.AddonCatalogueSpec, bytes int) Weight {
	addons, versions := Size(spec)
	return Weight{Versions: max(1, int(versions)), Bytes: bytes + max(1, int(addons))*addonBytes + int(versions)*originBytes}
}

// weighRead is Weigh of a spec whose versions were encoded already.
func weighRead(spec *v1.AddonCatalogueSpec, addons []sourceAddon) Weight {
	about, bytes := *spec, 0
	about.Addons = slices.Clone(spec.Addons)
	for i := range addons {
		about.Addons[i].Versions = nil
		bytes += len(`,"versions":[]`) - 1
		for j := range addons[i].versions {
			bytes += addons[i].versions[j].size + len(",")
		}
	}
	encoded, _ := json.Marshal(about) // texts always encode
	return weigh(spec, len(encoded)+bytes)
}

// Weight is what Weigh gives for the spec that was read.
func (s *Source) Weight() Weight { return s.weight }

// WeighObject counts labels and annotations too, which the master's manager has in memory.
func WeighObject(object *v1.AddonCatalogue) Weight {
	return Weigh(&object.Spec).Plus(metadataOf(object))
}

// WeighCached weighs an object of a cache, which may be a stub.
func WeighCached(object *v1.AddonCatalogue) Weight {
	if bytes, isStub := budget.Size(object); isStub {
		return Weight{Versions: 1, Bytes: int(bytes)}
	}
	return Weigh(&object.Spec)
}

func metadataOf(object *v1.AddonCatalogue) Weight {
	sum := 0
	for _, of := range []map[string]string{object.Labels, object.Annotations} {
		for key, value := range of {
			sum += len(key) + len(value)
		}
	}
	return Weight{Bytes: max(0, sum-freeBytes)}
}

// Plus adds two weights.
func (w Weight) Plus(other Weight) Weight {
	return Weight{w.Versions + other.Versions, w.Bytes + other.Bytes}
}

func (w Weight) within(most Weight) bool { return w.Versions <= most.Versions && w.Bytes <= most.Bytes }

// NoRoomError says that Custom catalogues would take more than they may. It names no present sum, which changes with each edit.
type NoRoomError struct {
	// Catalogue is the one that is left out; empty: it is not written.
	Catalogue string
	// Author is the catalogue whose share is used up; empty: all catalogues together would take too much.
	Author string
}

func (e *NoRoomError) Error() string {
	what, whose, most := "", "all Custom catalogues together", mostOfAll
	if e.Catalogue != "" {
		what, whose = fmt.Sprintf("catalogue %q is not merged: ", e.Catalogue), "all Custom catalogues that come before it, together,"
	}
	if e.Author != "" {
		whose, most = fmt.Sprintf("catalogue %q, with all that is generated from it,", e.Author), mostOfAuthor
	}
	return fmt.Sprintf("%swith it, %s would have more than %d versions or %d MiB: take out versions or catalogues that are not needed",
		what, whose, most.Versions, most.Bytes>>20)
}

// CheckRoom refuses what makes an author's catalogues larger than there is room for beside the others, which are only weighed where
// something grows.
func CheckRoom(author string, others func() Weight, before, after Weight) error {
	switch {
	case after.within(before):
		return nil
	case !after.within(mostOfAuthor):
		return &NoRoomError{Author: author}
	case !others().Plus(after).within(mostOfAll):
		return &NoRoomError{}
	}
	return nil
}

// Scale weighs catalogues of a cache, and remembers what they weigh.
type Scale struct {
	mutex sync.Mutex
	known map[types.UID]weighed
}

type weighed struct {
	generation int64
	weight     Weight
}

// Others is what the Custom catalogues of a namespace weigh that are not of this author.
func (s *Scale) Others(all []v1.AddonCatalogue, namespace, author string) (sum Weight) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	fresh := make(map[types.UID]weighed, len(all))
	for i := range all {
		object := &all[i]
		known, isKnown := s.known[object.UID]
		if !isKnown || known.generation != object.Generation {
			known = weighed{object.Generation, WeighCached(object)}
			if budget.IsStub(object) { // it may become whole
				known.generation = -1
			}
		}
		fresh[object.UID] = known
		role := object.Labels[v1.LabelRole]
		if object.Namespace == namespace && typeOf(&object.Spec) == v1.CatalogueCustom && (role == "" || role == v1.RoleGenerated) &&
			Author(object) != author {
			sum = sum.Plus(known.weight).Plus(metadataOf(object))
		}
	}
	s.known = fresh
	return sum
}

// Room is what Custom catalogues had when there was room for them last, by place.
type Room map[string]Weight

// roomLimit is what it takes in etcd at most, in bytes. Beyond it, the smallest catalogues are left out: after a restart they are as new.
const roomLimit = 96 << 10

// Encode is a text for ConfigMap v1.ConfigMapOwners.
func (r Room) Encode() string {
	largest := slices.SortedFunc(maps.Keys(r), func(a, b string) int {
		return cmp.Or(r[b].Bytes-r[a].Bytes, cmp.Compare(a, b))
	})
	var text strings.Builder
	for _, place := range largest {
		line := fmt.Sprintln(place, r[place].Versions, r[place].Bytes)
		if text.Len()+len(line) > roomLimit {
			break
		}
		text.WriteString(line)
	}
	return text.String()
}

// DecodeRoom reads the result of Encode, and leaves out what it can't read.
func DecodeRoom(text string) Room {
	found := Room{}
	for line := range strings.Lines(text) {
		var place string
		var had Weight
		if _, err := fmt.Sscan(line, &place, &had.Versions, &had.Bytes); err == nil {
			found[place] = had
		}
	}
	return found
}

// placeIn is what Room knows a source by, after a restore and under another UID too.
func (s *Source) placeIn() string {
	if s.git == "" || len(s.addons) == 0 {
		return partOf(s.Name)
	}
	return partOf(s.git, string(s.addons[0].addon.Name))
}

// growth is by how much a weight exceeds another one, in bytes, with versions as what they may take of mostOfAll.
func (w Weight) growth(had Weight) int {
	return max(0, w.Bytes-had.Bytes) + max(0, w.Versions-had.Versions)*(mostOfAll.Bytes/mostOfAll.Versions)
}

// beyond finds the Custom catalogues for which there is no room, and what the others have. Those come first that grew least since there was
// room for them last: what grew past admission, of any age, takes nobody's place. Then the oldest come.
func beyond(sources []*Source, had Room) (left map[types.UID]*NoRoomError, has Room) {
	first := slices.SortedFunc(slices.Values(sources), func(a, b *Source) int {
		return cmp.Or(a.weight.growth(had[a.place])-b.weight.growth(had[b.place]),
			a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	left, has = map[types.UID]*NoRoomError{}, Room{}
	all, of := Weight{}, map[string]Weight{}
	for _, source := range first {
		author := source.author()
		own, sum := of[author].Plus(source.weight), all.Plus(source.weight)
		switch {
		case source.Type == v1.CatalogueCore:
		case !own.within(mostOfAuthor):
			left[source.UID] = &NoRoomError{Catalogue: source.Name, Author: author}
		case !sum.within(mostOfAll):
			left[source.UID] = &NoRoomError{Catalogue: source.Name}
		default:
			of[author], all, has[source.place] = own, sum, source.weight
		}
	}
	return left, has
}
