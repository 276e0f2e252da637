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
	"github.com/trellis-addons/trellis/pkg/base/budget"
)

// Weight is the size of catalogues on the master and on every seed.
type Weight struct {
	// Versions counts a catalogue without any as one.
	Versions int
	Bytes    int
}

// mostOfAll is the maximum of all Custom catalogues together, and mostOfAuthor that of one author (see Author): the
// largest repository has 8192 versions.
var (
	mostOfAll    = Weight{Versions: 20_000, Bytes: 64 << 20}
	mostOfAuthor = Weight{Versions: mostOfAll.Versions / 2, Bytes: mostOfAll.Bytes / 2}
)

const (
	addonBytes  = 1 << 10 // an object on each seed
	originBytes = 256     // of a version, in an annotation
	freeBytes   = 4 << 10 // of labels and annotations: an object can be marked although there is no space for its content
)

// Weigh computes the weight of a spec as it is written to seeds.
func Weigh(spec *v1.AddonCatalogueSpec) Weight {
	encoded, _ := json.Marshal(spec) // a spec that can't be encoded is invalid
	return weigh(spec, len(encoded))
}

// weigh computes the weight of a spec of so many bytes as JSON.
func weigh(spec *v1.AddonCatalogueSpec, bytes int) Weight {
	addons, versions := Size(spec)
	return Weight{Versions: max(1, int(versions)), Bytes: bytes + max(1, int(addons))*addonBytes + int(versions)*originBytes}
}

// weighRead is Weigh for a spec whose versions were encoded already.
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

// Weight is the result of Weigh for the spec that was read.
func (s *Source) Weight() Weight { return s.weight }

// WeighObject also counts labels and annotations, which the master's manager holds in memory.
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

// NoSpaceError reports that Custom catalogues would be larger than allowed. It does not name the present sum, which
// changes with each edit.
type NoSpaceError struct {
	// Catalogue is the one that is left out; empty: it is not written.
	Catalogue string
	// Author is the catalogue whose share is used up; empty: all catalogues together would be too large.
	Author string
}

func (e *NoSpaceError) Error() string {
	what, whose, most := "", "all Custom catalogues together", mostOfAll
	if e.Catalogue != "" {
		what, whose = fmt.Sprintf("catalogue %q is not merged: ", e.Catalogue), "all Custom catalogues that come before it, together,"
	}
	if e.Author != "" {
		whose, most = fmt.Sprintf("catalogue %q, with all that is generated from it,", e.Author), mostOfAuthor
	}
	return fmt.Sprintf("%swith it, %s would have more than %d versions or %d MiB: remove versions or catalogues that are not needed",
		what, whose, most.Versions, most.Bytes>>20)
}

// CheckSpace refuses a change that makes an author's catalogues larger than the space beside the others. It weighs the
// others only if the change adds weight.
func CheckSpace(author string, others func() Weight, before, after Weight) error {
	switch {
	case after.within(before):
		return nil
	case !after.within(mostOfAuthor):
		return &NoSpaceError{Author: author}
	case !others().Plus(after).within(mostOfAll):
		return &NoSpaceError{}
	}
	return nil
}

// Scale weighs catalogues of a cache, and caches their weights.
type Scale struct {
	mutex sync.Mutex
	known map[types.UID]weighed
}

type weighed struct {
	generation int64
	weight     Weight
}

// Others is the weight of the Custom catalogues of a namespace that are not of this author.
func (s *Scale) Others(all []v1.AddonCatalogue, namespace, author string) (sum Weight) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	fresh := make(map[types.UID]weighed, len(all))
	for i := range all {
		object := &all[i]
		known, isKnown := s.known[object.UID]
		if !isKnown || known.generation != object.Generation {
			known = weighed{object.Generation, WeighCached(object)}
			if budget.IsStub(object) { // it may become complete
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

// Space are the weights of Custom catalogues when there was space for them last, by place.
type Space map[string]Weight

// spaceLimit is the maximum size of Room in etcd, in bytes. Beyond it, Encode omits the smallest catalogues: after a
// restart they count as new.
const spaceLimit = 96 << 10

// Encode is a text for ConfigMap v1.ConfigMapOwners.
func (r Space) Encode() string {
	largest := slices.SortedFunc(maps.Keys(r), func(a, b string) int {
		return cmp.Or(r[b].Bytes-r[a].Bytes, cmp.Compare(a, b))
	})
	var text strings.Builder
	for _, place := range largest {
		line := fmt.Sprintln(place, r[place].Versions, r[place].Bytes)
		if text.Len()+len(line) > spaceLimit {
			break
		}
		text.WriteString(line)
	}
	return text.String()
}

// DecodeSpace reads the result of Encode, and omits invalid parts.
func DecodeSpace(text string) Space {
	found := Space{}
	for line := range strings.Lines(text) {
		var place string
		var had Weight
		if _, err := fmt.Sscan(line, &place, &had.Versions, &had.Bytes); err == nil {
			found[place] = had
		}
	}
	return found
}

// placeIn is the key of a source in Room, which a restore and another UID don't change.
func (s *Source) placeIn() string {
	if s.git == "" || len(s.addons) == 0 {
		return partOf(s.Name)
	}
	return partOf(s.git, string(s.addons[0].addon.Name))
}

// growth is the amount by which a weight exceeds another one, in bytes, with versions converted by their part of
// mostOfAll.
func (w Weight) growth(had Weight) int {
	return max(0, w.Bytes-had.Bytes) + max(0, w.Versions-had.Versions)*(mostOfAll.Bytes/mostOfAll.Versions)
}

// beyond finds the Custom catalogues for which there is no space, and the weights of the others. Catalogues that grew
// least since there was space for them last have precedence, so one that grew past admission displaces no other,
// regardless of its age. Then older ones have precedence.
func beyond(sources []*Source, had Space) (left map[types.UID]*NoSpaceError, has Space) {
	first := slices.SortedFunc(slices.Values(sources), func(a, b *Source) int {
		return cmp.Or(a.weight.growth(had[a.place])-b.weight.growth(had[b.place]),
			a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	left, has = map[types.UID]*NoSpaceError{}, Space{}
	all, of := Weight{}, map[string]Weight{}
	for _, source := range first {
		author := source.author()
		own, sum := of[author].Plus(source.weight), all.Plus(source.weight)
		switch {
		case source.Type == v1.CatalogueCore:
		case !own.within(mostOfAuthor):
			left[source.UID] = &NoSpaceError{Catalogue: source.Name, Author: author}
		case !sum.within(mostOfAll):
			left[source.UID] = &NoSpaceError{Catalogue: source.Name}
		default:
			of[author], all, has[source.place] = own, sum, source.weight
		}
	}
	return left, has
}
