package catalogue_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// claimsOf are the claims for some owners and for the annotations take-over of catalogues.
func claimsOf(owners catalogue.Owners, objects ...*v1.AddonCatalogue) catalogue.Claims {
	claims := catalogue.Claims{Owners: owners, TakeOver: map[string]map[string]bool{}}
	for _, object := range objects {
		claims.TakeOver[object.Name] = catalogue.TakesOver(object)
	}
	return claims
}

func takes(object *v1.AddonCatalogue, addons string) *v1.AddonCatalogue {
	object.Annotations = map[string]string{v1.AnnotationTakeOver: addons}
	return object
}

// fromGit is a catalogue that is generated from a catalogue in git.
func fromGit(parent string, object *v1.AddonCatalogue) *v1.AddonCatalogue {
	object.Labels = map[string]string{v1.LabelRole: v1.RoleGenerated}
	object.OwnerReferences = []metav1.OwnerReference{{Kind: "AddonCatalogue", Name: parent, UID: types.UID(parent), Controller: new(true)}}
	return object
}

// TestAnAddonStaysWithItsCatalogue (AC76): an author of Custom catalogues, with any priority, can't change an add-on
// of another catalogue, and can't add to it. The test fails for each rule of Merge that is left out.
func TestAnAddonStaysWithItsCatalogue(t *testing.T) {
	t.Parallel()
	const custom, core = v1.CatalogueCustom, v1.CatalogueCore
	victim := func() *v1.AddonCatalogue { return authored("victim", custom, 0, "web: 1.0.0") }
	shadow := func(addons ...string) *v1.AddonCatalogue { return authored("shadow", custom, 1000, addons...) }
	leftOut := map[string]map[string]bool{"shadow": {"web": true}}
	for _, test := range []struct {
		why     string
		claims  catalogue.Claims
		objects []*v1.AddonCatalogue
		want    string
		owners  string
	}{
		{"the owner stays, whatever priority another has", catalogue.Claims{Owners: catalogue.Owners{"web": {"victim"}}},
			[]*v1.AddonCatalogue{victim(), shadow("web: 1.0.0")}, "1.0.0 from victim; on shadow: won by victim", "victim"},
		{"a version that the owner does not have is not added", catalogue.Claims{Owners: catalogue.Owners{"web": {"victim"}}},
			[]*v1.AddonCatalogue{victim(), shadow("web: 1.0.1")}, "1.0.0 from victim; on shadow: won by victim", "victim"},
		{"priority decides between those that are new at the same time", catalogue.Claims{},
			[]*v1.AddonCatalogue{victim(), shadow("web: 1.0.1")}, "1.0.1 from shadow; on victim: won by shadow", "shadow"},
		{"one that takes over wins, and what it lacks stays", catalogue.Claims{Owners: catalogue.Owners{"web": {"victim"}}},
			[]*v1.AddonCatalogue{authored("victim", custom, 9, "web: 1.0.0 1.1.0"), takes(authored("other", custom, 0, "web: 1.0.0 1.2.0"), "db, web")},
			"1.2.0 from other, 1.1.0 from victim, 1.0.0 from other; on other: 1.0.0 won by other; on victim: 1.0.0 won by other", "other victim"},
		{"one takes over what it names, and nothing else", catalogue.Claims{Owners: catalogue.Owners{"web": {"victim"}}},
			[]*v1.AddonCatalogue{victim(), takes(shadow("web: 1.0.0"), "webs,we")}, "1.0.0 from victim; on shadow: won by victim", "victim"},
		{"the later one that takes over is first", catalogue.Claims{Owners: catalogue.Owners{"web": {"other", "victim"}}},
			[]*v1.AddonCatalogue{victim(), takes(authored("other", custom, 0, "web: 1.0.0"), "web"), takes(shadow("web: 1.0.0"), "web")},
			"1.0.0 from shadow; on other: 1.0.0 won by shadow; on shadow: 1.0.0 won by shadow; on victim: 1.0.0 won by shadow", "shadow other victim"},
		{"an owner that takes over is before those that don't", catalogue.Claims{Owners: catalogue.Owners{"web": {"shadow", "victim"}}},
			[]*v1.AddonCatalogue{takes(victim(), "web"), shadow("web: 1.0.0")},
			"1.0.0 from victim; on shadow: 1.0.0 won by victim; on victim: 1.0.0 won by victim", "victim shadow"},
		{"of two owners that take over the first stays", catalogue.Claims{Owners: catalogue.Owners{"web": {"victim", "shadow"}}},
			[]*v1.AddonCatalogue{takes(victim(), "web"), takes(shadow("web: 1.0.0"), "web")},
			"1.0.0 from victim; on shadow: 1.0.0 won by victim; on victim: 1.0.0 won by victim", "victim shadow"},
		{"an owner that has it no longer gives it up", catalogue.Claims{Owners: catalogue.Owners{"web": {"victim"}}},
			[]*v1.AddonCatalogue{authored("victim", custom, 0, "db: 1.0.0"), shadow("web: 1.0.1")}, "1.0.1 from shadow", "shadow"},
		{"an owner that is gone gives it up", catalogue.Claims{Owners: catalogue.Owners{"web": {"victim"}}},
			[]*v1.AddonCatalogue{shadow("web: 1.0.1")}, "1.0.1 from shadow", "shadow"},
		{"an owner that can't be read gives nothing up",
			catalogue.Claims{Owners: catalogue.Owners{"web": {"victim"}}, Held: map[string]bool{"victim": true}},
			[]*v1.AddonCatalogue{shadow("web: 1.0.1")}, "; on shadow: won by victim", "victim"},
		{"an owner that lacks it for a short while keeps it",
			catalogue.Claims{Owners: catalogue.Owners{"web": {"victim"}}, Missing: map[string]map[string]bool{"victim": {"web": true}}},
			[]*v1.AddonCatalogue{shadow("web: 1.0.1")}, "; on shadow: won by victim", "victim"},
		{"and keeps nothing else",
			catalogue.Claims{Owners: catalogue.Owners{"web": {"victim"}}, Missing: map[string]map[string]bool{"victim": {"db": true}}},
			[]*v1.AddonCatalogue{shadow("web: 1.0.1")}, "1.0.1 from shadow", "shadow"},
		{"but for who takes it over meanwhile",
			catalogue.Claims{Owners: catalogue.Owners{"web": {"victim"}}, Missing: map[string]map[string]bool{"victim": {"web": true}}},
			[]*v1.AddonCatalogue{takes(shadow("web: 1.0.1"), "web")}, "1.0.1 from shadow", "shadow victim"},
		{"the next owner has it when the first gives it up", catalogue.Claims{Owners: catalogue.Owners{"web": {"shadow", "victim"}}},
			[]*v1.AddonCatalogue{victim(), authored("third", custom, 1000, "web: 1.0.0")}, "1.0.0 from victim; on third: won by victim", "victim"},
		{"catalogues of one repository are one author", catalogue.Claims{Owners: catalogue.Owners{"web": {"git"}}},
			[]*v1.AddonCatalogue{fromGit("git", authored("git-web-0", custom, 0, "web: 1.0.0")), shadow("web: 1.0.1")},
			"1.0.0 from git-web-0; on shadow: won by git", "git"},
		{"a Core catalogue has the name before any owner", catalogue.Claims{Owners: catalogue.Owners{"web": {"victim"}}},
			[]*v1.AddonCatalogue{victim(), authored("platform", core, 0, "web: 2.0.0")}, "2.0.0 from platform; on victim: won by platform", "victim"},
		{"who comes while a Core catalogue has the name owns nothing", catalogue.Claims{},
			[]*v1.AddonCatalogue{shadow("web: 1.0.0"), authored("platform", core, 0, "web: 2.0.0")},
			"2.0.0 from platform; on shadow: won by platform", ""},
		{"at the upgrade all that win a version are owners", catalogue.Claims{Adopt: true},
			[]*v1.AddonCatalogue{victim(), shadow("web: 1.0.0 1.0.1"), authored("third", custom, 0, "web: 1.0.1")},
			"1.0.1 from shadow, 1.0.0 from shadow; on third: won by shadow; on victim: won by shadow", "shadow"},
		{"where owners were lost, who was left out is so again", catalogue.Claims{Adopt: true, LeftOut: leftOut},
			[]*v1.AddonCatalogue{victim(), shadow("web: 1.0.0 1.0.1")}, "1.0.0 from victim; on shadow: won by victim", "victim"},
		{"but for where nobody else has it", catalogue.Claims{Adopt: true, LeftOut: leftOut},
			[]*v1.AddonCatalogue{shadow("web: 1.0.1")}, "1.0.1 from shadow", "shadow"},
		{"owners that are known are not found again", catalogue.Claims{Adopt: true, Owners: catalogue.Owners{"web": {"victim"}}},
			[]*v1.AddonCatalogue{victim(), shadow("web: 1.0.1")}, "1.0.0 from victim; on shadow: won by victim", "victim"},
	} {
		test.claims.TakeOver = claimsOf(nil, test.objects...).TakeOver
		merged := catalogue.Merge(sourcesOf(t, test.objects...), test.claims)
		if got := webOf(merged); got != test.want {
			t.Errorf("%s: %q, want %q", test.why, got, test.want)
		}
		if got := strings.Join(merged.Owners["web"], " "); got != test.owners {
			t.Errorf("%s: owners %q, want %q", test.why, got, test.owners)
		}
	}
}

// webOf describes the merged versions of add-on web, and the conflicts.
func webOf(merged catalogue.Merged) string {
	var versions []string
	if addon := merged.Addons["web"]; addon != nil {
		for _, version := range addon.Spec.Addons[0].Versions {
			versions = append(versions, version.Version+" from "+addon.Origins[version.Version].Catalogue)
		}
	}
	parts := []string{strings.Join(versions, ", ")}
	for _, line := range story(merged) {
		if on, isConflict := strings.CutPrefix(line, "on "); isConflict {
			parts = append(parts, "on "+strings.NewReplacer(": web ", ": ", "  won", " won").Replace(on[:strings.LastIndex(on, ",")]))
		}
	}
	return strings.ReplaceAll(strings.Join(parts, "; "), ":  won", ": won")
}

// TestSlotAndNamespaceStayWithTheOwner: The slot and the namespace of an owner stay too.
func TestSlotAndNamespaceStayWithTheOwner(t *testing.T) {
	t.Parallel()
	victim, shadow := authored("victim", "", 0, "web: 1.0.0"), authored("shadow", "", 1000, "web: 1.0.0")
	shadow.Spec.Addons[0].Slot, shadow.Spec.Addons[0].TargetNamespace = v1.SlotCNI, "kube-system"
	merged := catalogue.Merge(sourcesOf(t, victim, shadow), catalogue.Claims{Owners: catalogue.Owners{"web": {"victim"}}})
	if addon := merged.Addons["web"].Spec.Addons[0]; addon.Slot != "" || addon.TargetNamespace != "" {
		t.Errorf("slot %q, namespace %q", addon.Slot, addon.TargetNamespace)
	}
	if got := merged.Addons["web"].Contributors; len(got) != 1 {
		t.Errorf("%d catalogues have a part in it", len(got))
	}
}

// TestAtTheUpgradeSlotAndNamespaceStay: At the upgrade slot and namespace stay too: their catalogue becomes an owner,
// at its rank, and a catalogue of lower rank that adds nothing does not.
func TestAtTheUpgradeSlotAndNamespaceStay(t *testing.T) {
	t.Parallel()
	first, slot := authored("first", "", 9, "web: 1.0.0"), authored("slot", "", 7, "web: 1.0.0")
	space, last := authored("space", "", 5, "web: 1.0.0"), authored("last", "", 3, "web: 1.0.0 1.1.0")
	slot.Spec.Addons[0].Slot, space.Spec.Addons[0].TargetNamespace = v1.SlotCNI, "kube-system"
	last.Spec.Addons[0].TargetNamespace = "elsewhere"
	none := authored("none", "", 1, "web: 1.0.0")
	none.Spec.Addons[0].Slot = v1.SlotCNI
	merged := catalogue.Merge(sourcesOf(t, first, slot, space, last, none), catalogue.Claims{Adopt: true})
	if got := strings.Join(merged.Owners["web"], " "); got != "first slot space last" {
		t.Errorf("owners %q", got)
	}
	if addon := merged.Addons["web"].Spec.Addons[0]; addon.Slot != v1.SlotCNI || addon.TargetNamespace != "kube-system" {
		t.Errorf("slot %q, namespace %q", addon.Slot, addon.TargetNamespace)
	}
}

// TestOwnersOnlyChangeWhereTheyMay: Catalogues are added, are removed, take over and can't be read. In all these
// cases the order of the sources does not matter, a merge with the returned owners is the same, owners change only
// where one gives up or another takes over, and no version is of a catalogue that owns nothing.
func TestOwnersOnlyChangeWhereTheyMay(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		owners := catalogue.Owners{}
		for range 4 {
			objects := randomCatalogues(random)
			for _, object := range objects {
				if random.IntN(4) == 0 {
					takes(object, []string{"loki", "loki,tempo", "canal"}[random.IntN(3)])
				}
			}
			claims := claimsOf(owners, objects...)
			claims.Held = map[string]bool{fmt.Sprintf("catalogue-%d", random.IntN(8)): true}
			claims.Missing = map[string]map[string]bool{fmt.Sprintf("catalogue-%d", random.IntN(8)): {"loki": true}}
			sources := sourcesOf(t, objects...)
			merged := catalogue.Merge(sources, claims)
			random.Shuffle(len(sources), func(i, j int) { sources[i], sources[j] = sources[j], sources[i] })
			claims.Owners = merged.Owners
			again := catalogue.Merge(sources, claims)
			if diff := cmp.Diff(story(merged), story(again)) + cmp.Diff(merged.Owners, again.Owners); diff != "" {
				t.Fatalf("merged again, it is not the same: %s", diff)
			}
			claims.Owners = owners
			checkOwners(t, objects, claims, merged)
			owners = merged.Owners
		}
	}
}

func checkOwners(t *testing.T, objects []*v1.AddonCatalogue, claims catalogue.Claims, merged catalogue.Merged) {
	t.Helper()
	offers := func(author, name string) bool {
		return slices.ContainsFunc(objects, func(object *v1.AddonCatalogue) bool {
			return object.Name == author && object.Spec.Type != v1.CatalogueCore &&
				slices.ContainsFunc(object.Spec.Addons, func(addon v1.Addon) bool { return string(addon.Name) == name })
		})
	}
	for name, before := range claims.Owners {
		for _, owner := range before {
			if stays := claims.Held[owner] || claims.Missing[owner][name] || offers(owner, name); stays != slices.Contains(merged.Owners[name], owner) {
				t.Fatalf("owner %q of %q: stays: %t; owners are %v", owner, name, stays, merged.Owners[name])
			}
		}
	}
	for name, after := range merged.Owners {
		had := slices.ContainsFunc(after, func(owner string) bool { return slices.Contains(claims.Owners[name], owner) })
		for _, owner := range after {
			isNew := !slices.Contains(claims.Owners[name], owner)
			if isNew && !claims.TakeOver[owner][name] && (had || len(after) > 1) {
				t.Fatalf("%q owns %q beside %v, and took nothing over", owner, name, after)
			}
		}
	}
	for name, addon := range merged.Addons {
		for version, origin := range addon.Origins {
			if addon.Spec.Type == v1.CatalogueCustom && !slices.Contains(merged.Owners[name], origin.Catalogue) {
				t.Fatalf("%s %s is of %q; owners are %v", name, version, origin.Catalogue, merged.Owners[name])
			}
		}
	}
}

// TestOwnersAreStoredAsTheyAre fails when stored owners differ from the read ones, when an invalid entry is accepted,
// or makes others unreadable.
func TestOwnersAreStoredAsTheyAre(t *testing.T) {
	t.Parallel()
	owners := catalogue.Owners{"web": {"other", "victim"}, "db": {"git.example"}}
	if got, whole := catalogue.DecodeOwners(owners.Encode()); !whole || cmp.Diff(owners, got) != "" {
		t.Errorf("whole %t, %v", whole, got)
	}
	data := owners.Encode()
	data["_former"] = "web victim 0123"
	if got, whole := catalogue.DecodeOwners(data); !whole || cmp.Diff(owners, got) != "" {
		t.Errorf("whole %t, %v", whole, got)
	}
	data["empty"], data["Upper"], data["spaced"] = "", "victim", "  a b"
	if got, whole := catalogue.DecodeOwners(data); whole || cmp.Diff(owners, got) != "" {
		t.Errorf("whole %t, %v", whole, got)
	}
	if got, whole := catalogue.DecodeOwners(nil); !whole || len(got) != 0 {
		t.Errorf("whole %t, %v", whole, got)
	}
}

// flood is a catalogue with many names.
func flood(author string, many int, more ...string) *v1.AddonCatalogue {
	for i := range many {
		more = append(more, fmt.Sprintf("%s-%05d-%s: 1.0.0", author, i, strings.Repeat("x", 40)))
	}
	return authored(author, "", 1000, more...)
}

// sizes are the sizes of owners in etcd, by the first of them, and in total.
func sizes(owners catalogue.Owners) (by map[string]int, all int) {
	by = map[string]int{}
	for name, text := range owners.Encode() {
		size := 2*len(name) + len(text) + 16
		by[owners[name][0]] += size
		all += size
	}
	return by, all
}

// TestAnAuthorHasAShareOfNames fails when an author's flood of names takes names from others, or an add-on from an
// owner, when a name is merged without recorded owners, or when an author's share is exceeded.
func TestAnAuthorHasAShareOfNames(t *testing.T) {
	t.Parallel()
	const many = 2000
	stored := catalogue.Owners{"zz": {"victim"}, "late": {"flood"}}
	objects := []*v1.AddonCatalogue{flood("flood", many, "late: 1.0.0", "zzz: 1.0.0"), authored("victim", "", 0, "zz: 1.0.0", "zzz: 1.0.0")}
	merged := catalogue.Merge(sourcesOf(t, objects...), catalogue.Claims{Owners: stored})
	if by, _ := sizes(merged.Owners); by["flood"] > catalogue.OwnersShare || by["flood"] < catalogue.OwnersShare-200 {
		t.Errorf("%d bytes are the flood's", by["flood"])
	}
	for name, owner := range map[string]string{"zz": "victim", "late": "flood", "zzz": "victim"} {
		if merged.Addons[name] == nil || !slices.Equal(merged.Owners[name], []string{owner}) {
			t.Errorf("%q belongs to %v", name, merged.Owners[name])
		}
	}
	for name := range merged.Addons {
		if merged.Owners[name] == nil {
			t.Fatalf("%q is merged without an owner", name)
		}
	}
	if len(merged.Refused)+len(merged.Addons) != many+3 {
		t.Errorf("%d refused, %d merged", len(merged.Refused), len(merged.Addons))
	}
	last := slices.Max(slices.Collect(maps.Keys(merged.Refused)))
	refused := merged.Refused[last]
	if said := refused.Error(); !strings.Contains(said, last) || !strings.Contains(said, `catalogue "flood" would take`) {
		t.Error(said)
	}
	if !slices.Equal(refused.Contributors, []types.UID{objects[0].UID}) {
		t.Errorf("it is told to %v", refused.Contributors)
	}
	// Add-ons that exist before owners are recorded stay.
	if merged := catalogue.Merge(sourcesOf(t, objects...), catalogue.Claims{Adopt: true}); len(merged.Refused) > 0 {
		t.Errorf("%d refused at the upgrade", len(merged.Refused))
	}
}

// TestOwnersAreBounded fails when all owners together exceed the limit of etcd, or when the names of an author with
// few are refused before those of one with many.
func TestOwnersAreBounded(t *testing.T) {
	t.Parallel()
	last := "zz" + strings.Repeat("z", 61) // does not fit in the rest
	few := authored("few", "", 0, last+": 1.0.0")
	objects := []*v1.AddonCatalogue{flood("flood", 10_000), few}
	sources := sourcesOf(t, objects...)
	merged := catalogue.Merge(sources, catalogue.Claims{Adopt: true})
	most := catalogue.OwnersLimit - catalogue.OwnersShare
	if _, all := sizes(merged.Owners); all > most || all < most-200 {
		t.Errorf("%d bytes", all)
	}
	if merged.Addons[last] == nil || len(merged.Refused) == 0 {
		t.Errorf("an author with one name has it: %t; %d are refused", merged.Addons[last] != nil, len(merged.Refused))
	}
	for name, refused := range merged.Refused {
		if said := refused.Error(); !strings.Contains(said, name) || !strings.Contains(said, "remove add-ons from them") {
			t.Fatal(said)
		}
	}
	later := authored("later", "", 0, "late: 1.0.0")
	again := catalogue.Merge(sourcesOf(t, append(objects, later)...), catalogue.Claims{Owners: merged.Owners})
	if !slices.Equal(again.Owners["late"], []string{"later"}) {
		t.Error("a later author has no room for one name")
	}
	delete(again.Owners, "late")
	if cmp.Diff(merged.Owners, again.Owners) != "" {
		t.Error("merged again, it is not the same")
	}
}

// TestManyAuthorsLeaveSpaceForNames fails when many authors with many names leave no space to a later one with few, or
// when their add-ons are removed.
func TestManyAuthorsLeaveSpaceForNames(t *testing.T) {
	t.Parallel()
	var objects []*v1.AddonCatalogue
	for i := range 17 {
		objects = append(objects, flood(fmt.Sprintf("flood-%02d", i), 480))
	}
	merged := catalogue.Merge(sourcesOf(t, objects...), catalogue.Claims{})
	if _, all := sizes(merged.Owners); all > catalogue.OwnersLimit*2/3 || all < catalogue.OwnersLimit/3 {
		t.Errorf("%d bytes", all)
	}
	var names []string
	for i := range 200 {
		names = append(names, fmt.Sprintf("late-%d: 1.0.0", i))
	}
	later := authored("later", "", 0, names...)
	again := catalogue.Merge(sourcesOf(t, append(objects, later)...), catalogue.Claims{Owners: merged.Owners})
	for name, refused := range again.Refused {
		if refused.Author == "later" {
			t.Fatalf("%s is refused: %v", name, refused)
		}
	}
	for name, owners := range merged.Owners {
		if !slices.Equal(again.Owners[name], owners) || again.Addons[name] == nil {
			t.Fatalf("%s belonged to %v, and now to %v", name, owners, again.Owners[name])
		}
	}
	if len(again.Owners) != len(merged.Owners)+200 {
		t.Errorf("%d names, and %d before", len(again.Owners), len(merged.Owners))
	}
}
