package catalogue_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// crowd is a catalogue with so many versions, of so many bytes each, created in that second.
func crowd(name string, second int64, versions, bytes int) *v1.AddonCatalogue {
	object := authored(name, v1.CatalogueCustom, 0)
	object.CreationTimestamp = metav1.NewTime(time.Unix(second, 0))
	for i := range versions {
		if i%100 == 0 {
			object.Spec.Addons = append(object.Spec.Addons, v1.Addon{Name: v1.AddonName(fmt.Sprintf("%s-%d", name, i))})
		}
		addon := &object.Spec.Addons[len(object.Spec.Addons)-1]
		addon.Versions = append(addon.Versions, v1.AddonVersion{Version: fmt.Sprintf("1.%d.0", i), ValuesTemplate: strings.Repeat("x", bytes)})
	}
	return object
}

// leftOut are the names of the catalogues for which a merge had no space.
func leftOut(merged catalogue.Merged) (names []string) {
	for uid := range merged.Beyond {
		names = append(names, strings.TrimPrefix(string(uid), "uid-"))
	}
	slices.Sort(names)
	return names
}

// TestCustomCataloguesHaveTotals fails when the versions or bytes of all Custom catalogues together, or of one
// author, are not limited; when an older catalogue is left out for a newer one, or any for a Core one; and when a
// platform of 5,000 versions is refused.
func TestCustomCataloguesHaveTotals(t *testing.T) {
	t.Parallel()
	core := crowd("core", 1, 12_000, 1)
	core.Spec.Type = v1.CatalogueCore
	var platform []*v1.AddonCatalogue
	for i := range 50 {
		platform = append(platform, crowd(fmt.Sprintf("team-%02d", i), int64(i), 100, 2<<10))
	}
	inGit := []*v1.AddonCatalogue{crowd("whole", 1, 0, 0)}
	for i := range 50 {
		inGit = append(inGit, fromGit("git", crowd(fmt.Sprintf("part-%02d", i), int64(i), 100, 2<<10)))
	}
	var many []*v1.AddonCatalogue
	var rest []string
	for i := range 70 {
		many = append(many, crowd(fmt.Sprintf("many-%02d", i), int64(100+i), 1, 1<<20-2<<10))
		if i >= 64 {
			rest = append(rest, fmt.Sprintf("many-%02d", i))
		}
	}
	for _, test := range []struct {
		why     string
		objects []*v1.AddonCatalogue
		want    []string
	}{
		{"5,000 versions in 50 catalogues", platform, nil},
		{"5,000 versions of one repository", inGit, nil},
		{"a Core catalogue takes nothing from others", []*v1.AddonCatalogue{core, crowd("a", 1, 9000, 1), crowd("b", 2, 9000, 1)}, nil},
		{"the newest has too many versions", []*v1.AddonCatalogue{crowd("c", 1, 9000, 1), crowd("a", 3, 9000, 1), crowd("b", 2, 9000, 1)}, []string{"a"}},
		{"a small one has room that a large one has not",
			[]*v1.AddonCatalogue{crowd("c", 1, 9000, 1), crowd("a", 3, 9000, 1), crowd("b", 2, 9000, 1), crowd("d", 4, 100, 1)}, []string{"a"}},
		{"of the same age the name decides",
			[]*v1.AddonCatalogue{crowd("c", 1, 9000, 1), crowd("a", 1, 9000, 1), crowd("b", 1, 9000, 1)}, []string{"c"}},
		{"many are too large", append(many, crowd("old", 1, 1, 1000)), rest},
		{"one author has a share, and leaves the others theirs",
			[]*v1.AddonCatalogue{
				fromGit("git", crowd("g1", 1, 6000, 1)), fromGit("git", crowd("g2", 2, 6000, 1)), fromGit("git", crowd("g3", 3, 4000, 1)),
				crowd("z", 4, 9000, 1),
			}, []string{"g2"}},
	} {
		sources := sourcesOf(t, test.objects...)
		merged := catalogue.Merge(sources, catalogue.Claims{})
		if diff := cmp.Diff(test.want, leftOut(merged)); diff != "" {
			t.Errorf("%s: %s", test.why, diff)
		}
		slices.Reverse(sources)
		if again := catalogue.Merge(sources, catalogue.Claims{Owners: merged.Owners}); cmp.Diff(leftOut(merged), leftOut(again)) != "" {
			t.Errorf("%s: merged again, it is not the same", test.why)
		}
		for name, addon := range merged.Addons {
			for _, origin := range addon.Origins {
				if slices.Contains(test.want, origin.Catalogue) {
					t.Fatalf("%s: %s is merged of %s", test.why, name, origin.Catalogue)
				}
			}
		}
	}
}

// TestSpaceIsStoredWithinABound fails when the stored weights of catalogues are not limited, when the largest are
// omitted first, and when an invalid part makes the rest unreadable.
func TestSpaceIsStoredWithinABound(t *testing.T) {
	t.Parallel()
	had := catalogue.Space{}
	for i := range 10_000 {
		had[fmt.Sprintf("%016x", i)] = catalogue.Weight{Versions: 1, Bytes: 1000 + i}
	}
	text := had.Encode()
	if len(text) > 96<<10 || len(text) < 95<<10 {
		t.Errorf("%d bytes", len(text))
	}
	found := catalogue.DecodeSpace("nonsense\n" + text)
	if len(found) < 3000 || found[fmt.Sprintf("%016x", 9_999)] != (catalogue.Weight{Versions: 1, Bytes: 10_999}) {
		t.Errorf("%d are known, the largest with %+v", len(found), found[fmt.Sprintf("%016x", 9_999)])
	}
}

// TestACatalogueWithoutSpaceKeepsItsNames fails when a catalogue for which there is no space gets names, or loses its
// own to another.
func TestACatalogueWithoutSpaceKeepsItsNames(t *testing.T) {
	t.Parallel()
	victim := crowd("victim", 3, 9000, 1)
	objects := []*v1.AddonCatalogue{crowd("a", 1, 9000, 1), crowd("b", 2, 9000, 1), victim, authored("shadow", "", 1000, "victim-0: 9.0.0", "victim-100: 9.0.0")}
	merged := catalogue.Merge(sourcesOf(t, objects...), catalogue.Claims{Owners: catalogue.Owners{"victim-0": {"victim"}}})
	if !maps.EqualFunc(merged.Beyond, map[types.UID]bool{victim.UID: true}, func(*catalogue.NoSpaceError, bool) bool { return true }) {
		t.Fatalf("left out: %v", leftOut(merged))
	}
	if merged.Addons["victim-0"] != nil || !slices.Equal(merged.Owners["victim-0"], []string{"victim"}) {
		t.Errorf("its add-on belongs to %v", merged.Owners["victim-0"])
	}
	if !slices.Equal(merged.Owners["victim-100"], []string{"shadow"}) || merged.Owners["victim-200"] != nil {
		t.Errorf("others belong to %v and %v", merged.Owners["victim-100"], merged.Owners["victim-200"])
	}
	if said := merged.Beyond[victim.UID].Error(); !strings.Contains(said, `catalogue "victim" is not merged`) || !strings.Contains(said, "20000 versions or 64 MiB") {
		t.Error(said)
	}
}

// TestCheckSpace fails when a change that adds no weight is refused, or one that exceeds the share of an author or the
// limit of all is not.
func TestCheckSpace(t *testing.T) {
	t.Parallel()
	of := func(versions int) catalogue.Weight { return catalogue.Weight{Versions: versions, Bytes: versions} }
	for _, test := range []struct {
		why                   string
		others, before, after catalogue.Weight
		want                  string
	}{
		{"there is room", of(10_000), of(1), of(10_000), ""},
		{"it shrinks", of(30_000), of(20_000), of(19_999), ""},
		{"it does not grow", of(30_000), of(7), of(7), ""},
		{"all have too many", of(19_999), of(1), of(2), "all Custom catalogues together would have more than 20000 versions"},
		{"one author has too many", of(1), of(1), of(10_001), `catalogue "me", with all that is generated from it, would have more than 10000 versions`},
		{"bytes alone are too many", of(1), of(1), catalogue.Weight{Versions: 1, Bytes: 40 << 20}, "or 32 MiB"},
	} {
		got := ""
		if err := catalogue.CheckSpace("me", func() catalogue.Weight { return test.others }, test.before, test.after); err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, test.want) || test.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", test.why, got, test.want)
		}
	}
}

// TestAScaleWeighsOthers fails when a scale counts catalogues that are not merged, the author's own, or the weight of
// a catalogue from before an edit.
func TestAScaleWeighsOthers(t *testing.T) {
	t.Parallel()
	core, role, elsewhere := crowd("core", 1, 10, 1), crowd("role", 1, 10, 1), crowd("elsewhere", 1, 10, 1)
	core.Spec.Type, role.Labels, elsewhere.Namespace = v1.CatalogueCore, map[string]string{v1.LabelRole: v1.RoleMerged}, "other"
	var all []v1.AddonCatalogue
	for _, object := range []*v1.AddonCatalogue{
		core, role, elsewhere, crowd("a", 1, 10, 1), fromGit("git", crowd("b", 1, 10, 1)), fromGit("me", crowd("c", 1, 10, 1)), crowd("me", 1, 0, 0),
	} {
		all = append(all, *object)
	}
	var scale catalogue.Scale
	if got := scale.Others(all, "", "me"); got.Versions != 20 || got.Bytes < 20*256 {
		t.Errorf("%+v", got)
	}
	edited := crowd("a", 1, 11, 1)
	edited.Generation = 2
	all[3] = *edited
	if got := scale.Others(all, "", "me"); got.Versions != 21 {
		t.Errorf("after an edit %+v", got)
	}
}
