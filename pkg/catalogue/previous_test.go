package catalogue_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// TestAPreviousOwnerAddsNothing fails when a previous owner adds a version to an add-on that another one took over,
// changes a version's content, or names the slot; when its versions are removed; when it may still not change them
// after the other one left; and when any of this depends on a process's memory.
func TestAPreviousOwnerAddsNothing(t *testing.T) {
	t.Parallel()
	const custom, core = v1.CatalogueCustom, v1.CatalogueCore
	victim := func(versions string) *v1.AddonCatalogue { return authored("victim", custom, 0, "web: "+versions) }
	other := func() *v1.AddonCatalogue { return authored("other", custom, 0, "web: 2.0.0") }
	changed := victim("1.0.0 1.1.0")
	changed.Spec.Addons[0].Slot, changed.Spec.Addons[0].Versions[0].ValuesTemplate = v1.SlotCNI, "other: content"
	deprecated := victim("1.0.0 1.1.0")
	deprecated.Spec.Addons[0].Versions[0].Deprecated = "take 2.0.0"
	const kept = "2.0.0 from other, 1.1.0 from victim, 1.0.0 from victim"
	for _, test := range []struct {
		why     string
		objects []*v1.AddonCatalogue
		want    string
		away    string
	}{
		{why: "what it had stays", objects: []*v1.AddonCatalogue{victim("1.0.0 1.1.0"), other()}, want: kept},
		{why: "a new version does not come", objects: []*v1.AddonCatalogue{victim("1.0.0 1.1.0 9.9.9"), other()},
			want: kept + "; on victim: 9.9.9 won by other"},
		{why: "another content does not come", objects: []*v1.AddonCatalogue{changed, other()},
			want: "2.0.0 from other, 1.1.0 from victim; on victim: 1.0.0 won by other"},
		{why: "a deprecation comes", objects: []*v1.AddonCatalogue{deprecated, other()}, want: kept},
		{why: "what goes is gone", objects: []*v1.AddonCatalogue{victim("1.1.0"), other()}, want: "2.0.0 from other, 1.1.0 from victim"},
		{why: "new versions alone are nothing", objects: []*v1.AddonCatalogue{victim("9.9.9"), other()},
			want: "2.0.0 from other; on victim: 9.9.9 won by other"},
		{why: "it takes the add-on over itself", objects: []*v1.AddonCatalogue{takes(victim("9.9.9"), "web"), other()},
			want: "9.9.9 from victim, 2.0.0 from other"},
		{why: "both take it over", objects: []*v1.AddonCatalogue{takes(victim("9.9.9"), "web"), takes(other(), "web")},
			want: "9.9.9 from victim, 2.0.0 from other"},
		{why: "the other one is gone", objects: []*v1.AddonCatalogue{victim("9.9.9")}, want: "9.9.9 from victim"},
		{why: "the other one is away for a while", objects: []*v1.AddonCatalogue{victim("9.9.9")}, away: "other", want: "; on victim: 9.9.9 won by other"},
		{why: "it is a Core catalogue now", objects: []*v1.AddonCatalogue{authored("victim", core, 0, "web: 3.0.0"), other()}, away: "victim",
			want: "3.0.0 from victim; on other: won by victim"},
		{why: "a Core catalogue has the name meanwhile",
			objects: []*v1.AddonCatalogue{victim("9.9.9"), other(), authored("platform", core, 0, "web: 3.0.0")},
			want:    "3.0.0 from platform; on other: won by platform; on victim: won by platform"},
	} {
		before := []*v1.AddonCatalogue{victim("1.0.0 1.1.0"), takes(other(), "web")}
		claims := claimsOf(catalogue.Owners{"web": {"victim"}}, before...)
		first := catalogue.Merge(sourcesOf(t, before...), claims)
		if got := webOf(first); got != kept {
			t.Fatalf("taken over: %q", got)
		}
		text := first.Previous.Encode()
		claims = claimsOf(first.Owners, test.objects...)
		claims.Previous = catalogue.DecodePrevious(text)
		claims.Missing = map[string]map[string]bool{test.away: {"web": true}}
		merged := catalogue.Merge(sourcesOf(t, test.objects...), claims)
		if got := webOf(merged); got != test.want {
			t.Errorf("%s: %q, want %q", test.why, got, test.want)
		}
		if addon := merged.Addons["web"]; addon != nil && addon.Spec.Addons[0].Slot != "" {
			t.Errorf("%s: slot %q", test.why, addon.Spec.Addons[0].Slot)
		}
		claims.Owners, claims.Previous = merged.Owners, merged.Previous
		if again := catalogue.Merge(sourcesOf(t, test.objects...), claims); cmp.Diff(story(merged), story(again)) != "" ||
			merged.Previous.Encode() != again.Previous.Encode() {
			t.Errorf("%s: merged again, it is not the same", test.why)
		}
	}
}

// TestAPreviousOwnerThatIsAwayAddsNothing fails when a previous owner that is absent at the take-over adds versions
// after its return, or when one whose content is unknown then has none.
func TestAPreviousOwnerThatIsAwayAddsNothing(t *testing.T) {
	t.Parallel()
	for why, test := range map[string]struct {
		claims catalogue.Claims
		want   string
	}{
		"deleted for a moment": {
			catalogue.Claims{Missing: map[string]map[string]bool{"victim": {"web": true}}}, "2.0.0 from other; on victim: 1.0.0 won by other",
		},
		"not read": {catalogue.Claims{Held: map[string]bool{"victim": true}}, "2.0.0 from other, 1.0.0 from victim"},
	} {
		other := takes(authored("other", "", 0, "web: 2.0.0"), "web")
		test.claims.Owners, test.claims.TakeOver = catalogue.Owners{"web": {"victim"}}, claimsOf(nil, other).TakeOver
		taken := catalogue.Merge(sourcesOf(t, other), test.claims)
		objects := []*v1.AddonCatalogue{other, authored("victim", "", 0, "web: 1.0.0")}
		claims := claimsOf(taken.Owners, objects...)
		claims.Previous = taken.Previous
		if got := webOf(catalogue.Merge(sourcesOf(t, objects...), claims)); got != test.want {
			t.Errorf("%s: %q, want %q", why, got, test.want)
		}
	}
}

// TestAPreviousOwnerWithoutSpaceKeepsWhatItHad fails when a previous owner that did not fit in the limit at the
// take-over has nothing after there is space.
func TestAPreviousOwnerWithoutSpaceKeepsWhatItHad(t *testing.T) {
	t.Parallel()
	victim, first, second := crowd("victim", 9, 300, 1), crowd("a", 1, 9900, 1), crowd("b", 2, 9900, 1)
	other := takes(authored("other", "", 0, "victim-0: 9.0.0"), "victim-0")
	other.CreationTimestamp = victim.CreationTimestamp
	objects := []*v1.AddonCatalogue{victim, first, second, other}
	claims := claimsOf(catalogue.Owners{"victim-0": {"victim"}}, objects...)
	claims.Had = catalogue.Merge(sourcesOf(t, first, second), catalogue.Claims{}).Space
	taken := catalogue.Merge(sourcesOf(t, objects...), claims)
	if len(taken.Beyond) != 1 || len(taken.Addons["victim-0"].Origins) != 1 {
		t.Fatalf("left out: %v", leftOut(taken))
	}
	claims.Owners, claims.Previous = taken.Owners, taken.Previous
	merged := catalogue.Merge(sourcesOf(t, victim, second, other), claims)
	if got := len(merged.Addons["victim-0"].Origins); got != 101 {
		t.Errorf("%d versions", got)
	}
}

// TestWhatPreviousOwnersHadIsBounded fails when the stored parts of previous owners are not limited, or when one with
// too many is no previous owner.
func TestWhatPreviousOwnersHadIsBounded(t *testing.T) {
	t.Parallel()
	owners, taken := catalogue.Owners{}, authored("other", "", 0)
	var objects []*v1.AddonCatalogue
	var names []string
	for _, victim := range []string{"victim-a", "victim-b"} {
		objects = append(objects, crowd(victim, 1, 9800, 1))
		for _, addon := range objects[len(objects)-1].Spec.Addons {
			owners[string(addon.Name)], names = []string{victim}, append(names, string(addon.Name))
			taken.Spec.Addons = append(taken.Spec.Addons, v1.Addon{Name: addon.Name, Versions: []v1.AddonVersion{{Version: "9.0.0"}}})
		}
	}
	objects = append(objects, takes(taken, strings.Join(names, ",")))
	merged := catalogue.Merge(sourcesOf(t, objects...), claimsOf(owners, objects...))
	if size := len(merged.Previous.Encode()); size > 270<<10 || size < 200<<10 {
		t.Errorf("%d bytes", size)
	}
	if len(merged.Previous) != len(names) {
		t.Errorf("%d of %d add-ons have a former owner", len(merged.Previous), len(names))
	}
}

// TestWhatIsNotKeptOfPreviousOwnersTakesNoSpace fails when parts of previous owners that are not stored, since there is
// no space, reduce the space for new add-ons.
func TestWhatIsNotKeptOfPreviousOwnersTakesNoSpace(t *testing.T) {
	t.Parallel()
	victim, taken, owners := flood("victim", 4700), authored("other", "", 0), catalogue.Owners{}
	var names []string
	for _, addon := range victim.Spec.Addons {
		owners[string(addon.Name)], names = []string{"victim"}, append(names, string(addon.Name))
		taken.Spec.Addons = append(taken.Spec.Addons, v1.Addon{Name: addon.Name, Versions: []v1.AddonVersion{{Version: "9.0.0"}}})
	}
	objects := []*v1.AddonCatalogue{victim, takes(taken, strings.Join(names, ",")), authored("fresh", "", 0, "new: 1.0.0")}
	merged := catalogue.Merge(sourcesOf(t, objects...), claimsOf(owners, objects...))
	if refused := merged.Refused["new"]; refused != nil || merged.Addons["new"] == nil {
		t.Errorf("refused: %v", refused)
	}
}
