package catalogue

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// sized is a catalogue as read, with so many versions, created in that second.
func sized(name string, second int64, versions int) *Source {
	return &Source{
		Name: name, UID: types.UID(name), Created: time.Unix(second, 0), place: name, weight: Weight{Versions: versions, Bytes: 1000 * versions},
	}
}

// TestWhatGrowsTakesNoSpaceOfOthers fails when the oldest catalogue grows past admission and displaces others, at once or
// after a restart, also one that grows a little itself; when the two change places with the next merge; when a
// catalogue that shrinks loses its space; and when none is merged once there is space.
func TestWhatGrowsTakesNoSpaceOfOthers(t *testing.T) {
	t.Parallel()
	had := Space{}
	find := func(why string, want []types.UID, sources ...*Source) {
		t.Helper()
		for _, again := range []string{"", " again", " after a restart"} {
			left, has := beyond(sources, had)
			if got := slices.Sorted(maps.Keys(left)); cmp.Diff(want, got) != "" {
				t.Errorf("%s%s: %v are left out, want %v", why, again, got, want)
			}
			had = DecodeSpace(has.Encode())
			slices.Reverse(sources)
		}
	}
	old, next, last, late := sized("old", 2, 500), sized("next", 3, 9_000), sized("last", 4, 9_000), sized("late", 9, 2_000)
	find("all have room", nil, sized("first", 1, 100), old, next, last)
	old = sized("old", 2, 9_000)
	find("an old one grows", []types.UID{"old"}, sized("first", 1, 100), old, next, last)
	find("two do", []types.UID{"first", "old"}, sized("first", 1, 5_000), old, next, last)
	find("one is new", []types.UID{"first", "old"}, sized("first", 1, 5_000), old, next, last, late)
	late = sized("late", 9, 1_900)
	find("two shrink", []types.UID{"old"}, sized("first", 1, 5_000), old, sized("next", 3, 10), last, late)
	find("one grows again", []types.UID{"next", "old"}, sized("first", 1, 5_000), old, next, last, late)
	last = sized("last", 4, 9_001)
	find("one grows a little", []types.UID{"next", "old"}, sized("first", 1, 5_000), old, next, last, late)
	last = sized("last", 4, 9_002)
	find("and again, while an old one grows much", []types.UID{"first", "next"}, sized("first", 1, 9_500), old, next, last, late)
	find("one goes", []types.UID{"next"}, sized("first", 1, 5_000), next, last, late)
	find("another one goes", nil, sized("first", 1, 5_000), next, late)
}

// TestGrowth fails when more versions with fewer bytes, or more bytes with fewer versions, are no growth.
func TestGrowth(t *testing.T) {
	t.Parallel()
	had := Weight{Versions: 100, Bytes: 1 << 20}
	for _, test := range []struct {
		why  string
		is   Weight
		want int
	}{
		{"the same", had, 0},
		{"less", Weight{Versions: 99, Bytes: 1 << 19}, 0},
		{"bytes alone", Weight{Versions: 1, Bytes: 1<<20 + 7}, 7},
		{"versions in place of bytes", Weight{Versions: 102, Bytes: 1}, 2 * mostOfAll.Bytes / mostOfAll.Versions},
	} {
		if got := test.is.growth(had); got != test.want {
			t.Errorf("%s: %d, want %d", test.why, got, test.want)
		}
	}
}

// TestWhatIsReadWeighsAsWhatIsAdmitted fails when the weight of a catalogue as read differs from its weight at
// admission.
func TestWhatIsReadWeighsAsWhatIsAdmitted(t *testing.T) {
	t.Parallel()
	object := &v1.AddonCatalogue{Spec: v1.AddonCatalogueSpec{Type: v1.CatalogueCustom, Priority: 3}}
	for number := range 3 {
		addon := v1.Addon{Name: v1.AddonName(fmt.Sprintf("addon-%d", number)), Description: "<with> \"marks\" & more"}
		for at := range number + 1 {
			addon.Versions = append(addon.Versions, v1.AddonVersion{
				Version: fmt.Sprintf("1.%d.0", at), ValuesTemplate: "a: <b>", Values: &runtime.RawExtension{Raw: []byte(`{"a":{"b":[1,"é"]}}`)},
				Template: &v1.Template{Method: v1.MethodGoTemplate},
				Source:   &v1.Source{Git: &v1.GitSource{Remote: "https://git.example.com/a.git", Path: "a"}},
			})
		}
		object.Spec.Addons = append(object.Spec.Addons, addon)
		read, err := Read(object)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(Weigh(&object.Spec), read.Weight()); diff != "" {
			t.Errorf("%d add-ons (-admitted +read):\n%s", number+1, diff)
		}
	}
	if read, err := Read(&v1.AddonCatalogue{}); err != nil || read.Weight() != Weigh(&v1.AddonCatalogueSpec{}) {
		t.Errorf("an empty one: %v, %v", read, err)
	}
}
