package addonset

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/waves"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// entryOf is an entry of an add-on with versions; "1.1.0 <1.37" has a constraint, "1.2.0!" is deprecated.
func entryOf(t testing.TB, addon string, versions ...string) *catalogue.Entry {
	t.Helper()
	merged := &v1.AddonCatalogue{}
	merged.Name = addon
	merged.Annotations = map[string]string{v1.AnnotationKKPVersion: "2.31.0"}
	about := v1.Addon{Name: v1.AddonName(addon)}
	for _, text := range versions {
		name, constraint, constrained := strings.Cut(text, " ")
		name, deprecated := strings.CutSuffix(name, "!")
		version := v1.AddonVersion{Version: name, Source: &v1.Source{Docker: &v1.ImageSource{Image: "registry.example/" + addon + ":" + name}}}
		if constrained {
			version.Constraints = &v1.Constraints{K8sVersion: v1.VersionRange(constraint)}
		}
		if deprecated {
			version.Deprecated = "old"
		}
		about.Versions = append(about.Versions, version)
	}
	merged.Spec = v1.AddonCatalogueSpec{Type: v1.CatalogueCustom, Addons: []v1.Addon{about}}
	entry, err := catalogue.NewEntry(merged)
	if err != nil {
		t.Fatal(err)
	}
	return entry
}

func offering(entries ...*catalogue.Entry) *offers {
	made := &offers{entries: map[string]*catalogue.Entry{}, kkp: "2.31.0"}
	for _, entry := range entries {
		made.entries[string(entry.Addon.Name)] = entry
	}
	return made
}

func itemOf(name, addon, version string) v1.AddonSetItem {
	return v1.AddonSetItem{
		Name: v1.AddonName(name), AddonRef: v1.AddonReference{Name: v1.AddonName(addon), Version: version}, TargetNamespace: "there",
	}
}

func setNamed(name string, items ...v1.AddonSetItem) *v1.AddonSet {
	made := &v1.AddonSet{}
	made.Name, made.UID, made.CreationTimestamp = name, types.UID("uid-"+name), metav1.NewTime(noon)
	made.Spec = v1.AddonSetSpec{ClusterSelector: &metav1.LabelSelector{}, Addons: items}
	return made
}

func reading(t testing.TB, sets ...*v1.AddonSet) map[string]*set {
	t.Helper()
	read := map[string]*set{}
	for _, one := range sets {
		found, err := readSet(one)
		if err != nil {
			t.Fatal(err)
		}
		read[one.Name] = found
	}
	return read
}

// madeBy is installation web as a set creates it, with that version applied.
func madeBy(t testing.TB, of *v1.AddonSet, from *offers, in *place, applied string) *v1.AddonInstallation {
	t.Helper()
	const name = "web"
	read := reading(t, of)[of.Name]
	resolved := newResolver(read, from)
	item := read.byName[name]
	chosen, place := resolved.choose(item, in, ""), resolved.landingOf(item, nil)
	made := resolved.prepare(item, &choice{}, preparedKey{version: applied, digest: chosen.digest, landing: place}, in)
	if _, origin := from.entries[item.addon()].Version(applied); origin.Content != "" {
		made = resolved.prepare(item, &choice{}, preparedKey{version: applied, digest: origin.Content, landing: place}, in)
	}
	live := &v1.AddonInstallation{Spec: made.intent.Spec}
	live.Namespace, live.Name, live.UID, live.Generation = in.ref.Namespace, name, types.UID("uid-of-"+name), 1
	live.Labels = made.intent.Labels
	live.Annotations = map[string]string{v1.AnnotationDigest: made.digest}
	live.Status.Version = applied
	return live
}

func clusterOn(version string) *place {
	return &place{
		name: "birch", ref: target.Ref{Kind: target.KindKKP, Namespace: "cluster-birch", Name: "birch"}, version: version, created: noon.Add(-time.Hour),
		labels: labels.Set{"tier": "small"}, live: byName{},
	}
}

// reported describes a plan.
func reported(p *plan) string {
	var words []string
	for _, one := range p.steps {
		word := fmt.Sprintf("%s %s %s>%s", one.kind, one.item, one.from, one.to)
		if one.repair {
			word = "Repair " + one.item
		}
		words = append(words, word)
	}
	for _, one := range p.blocked {
		words = append(words, fmt.Sprintf("Blocked %s %s", one.Item, one.Reason))
	}
	slices.Sort(words)
	if p.presence == waves.Unknown {
		words = append(words, "unknown")
	}
	if p.unfit {
		words = append(words, "unfit")
	}
	return strings.Join(words, ", ")
}

// TestWhatASetWantsOfACluster fails where a rule of targets, of names or of unknown states is broken.
func TestWhatASetWantsOfACluster(t *testing.T) {
	web := func() *v1.AddonSet { return setNamed("tools", itemOf("web", "web", "1.x")) }
	standard := offering(entryOf(t, "web", "1.0.0", "1.1.0", "1.2.0 >=1.37", "1.1.5!"))
	mine := func(applied string) func(*v1.AddonSet, *place) {
		return func(of *v1.AddonSet, in *place) { in.live["web"] = observationOf(madeBy(t, of, standard, in, applied)) }
	}
	foreign := func(name string) func(*v1.AddonSet, *place) {
		return func(_ *v1.AddonSet, in *place) {
			live := &v1.AddonInstallation{}
			live.Name, live.Spec.AddonRef.Name, live.Spec.TargetNamespace = name, "web", "there"
			in.live[name] = observationOf(live)
		}
	}
	only := func(change func(*v1.AddonSet)) func(*v1.AddonSet, *place) {
		return func(of *v1.AddonSet, _ *place) { change(of) }
	}
	for _, test := range []struct {
		why     string
		changes []func(*v1.AddonSet, *place)
		offers  *offers
		want    string
	}{
		{"it is not there", nil, standard, "Install web >1.1.0"},
		{"it is as it should be", []func(*v1.AddonSet, *place){mine("1.1.0")}, standard, ""},
		{"a newer version is in the range", []func(*v1.AddonSet, *place){mine("1.0.0")}, standard, "Update web 1.0.0>1.1.0"},
		{"the deprecated one that is there stays", []func(*v1.AddonSet, *place){mine("1.1.5")}, standard, ""},
		{"withdrawn: it stays", []func(*v1.AddonSet, *place){mine("1.0.0")}, offering(entryOf(t, "web", "2.0.0")), ""},
		{"never down", []func(*v1.AddonSet, *place){mine("1.1.0")}, offering(entryOf(t, "web", "1.0.0", "1.1.0 >=1.37")),
			"Blocked web K8sVersion"},
		{"what is applied does not fit, and another does: at once", []func(*v1.AddonSet, *place){mine("1.0.0")},
			offering(entryOf(t, "web", "1.0.0 >=1.37", "1.1.0")), "Update web 1.0.0>1.1.0, unfit"},
		{"gone from every catalogue: no change", []func(*v1.AddonSet, *place){mine("1.0.0")}, offering(), ""},
		{"gone, and the set has other values: no change", []func(*v1.AddonSet, *place){mine("1.0.0"), only(func(of *v1.AddonSet) {
			of.Spec.Addons[0].ValuesTemplate = "other"
		})}, offering(), ""},
		{"no catalogue has it", nil, offering(), "Blocked web AddonUnknown"},
		{"nothing fits", nil, offering(entryOf(t, "web", "1.0.0 >=1.37")), "Blocked web K8sVersion"},
		{"somebody has the name", []func(*v1.AddonSet, *place){foreign("web")}, standard, "Blocked web NameTaken"},
		{"somebody has the add-on in that namespace", []func(*v1.AddonSet, *place){foreign("other")}, standard, "Blocked web NameTaken"},
		{"the Cluster asks for it", []func(*v1.AddonSet, *place){func(_ *v1.AddonSet, in *place) {
			in.asked = []asked{{name: "mine", addon: "web", targetNamespace: "there"}}
		}}, standard, "Blocked web NameTaken"},
		{"others changed it", []func(*v1.AddonSet, *place){mine("1.1.0"), func(_ *v1.AddonSet, in *place) {
			in.live["web"].Spec.ValuesTemplate = "other"
		}}, standard, "Repair web"},
		{"values beside the set's stay", []func(*v1.AddonSet, *place){mine("1.1.0"), func(_ *v1.AddonSet, in *place) {
			in.live["web"].Spec.Values = &runtime.RawExtension{Raw: []byte(`{"a":1}`)}
		}}, standard, ""},
		{"an override of the cluster", []func(*v1.AddonSet, *place){mine("1.1.0"), only(func(of *v1.AddonSet) {
			of.Spec.Overrides = []v1.AddonSetOverride{{
				ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "small"}}, Addon: "web",
				Values: &runtime.RawExtension{Raw: []byte(`{"replicas":1}`)},
			}}
		})}, standard, "Update web 1.1.0>1.1.0"},
		{"unselected", []func(*v1.AddonSet, *place){mine("1.1.0"), only(func(of *v1.AddonSet) {
			of.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "large"}}
		})}, standard, "Remove web 1.1.0>"},
		{"another item", []func(*v1.AddonSet, *place){mine("1.1.0"), only(func(of *v1.AddonSet) { of.Spec.Addons[0].Name = "front" })},
			standard, "Blocked front NameTaken, Remove web 1.1.0>"},
		{"another namespace", []func(*v1.AddonSet, *place){mine("1.1.0"), only(func(of *v1.AddonSet) {
			of.Spec.Addons[0].TargetNamespace = "elsewhere"
		})}, standard, "Blocked web ImmutableField"},
		{"a version that is unknown while constrained", []func(*v1.AddonSet, *place){mine("1.1.0"), func(of *v1.AddonSet, in *place) {
			of.Spec.Constraints, in.version = &v1.Constraints{K8sVersion: "1.36"}, ""
		}}, standard, "unknown"},
		{"the platform's version is constrained away", []func(*v1.AddonSet, *place){mine("1.1.0"), only(func(of *v1.AddonSet) {
			of.Spec.Constraints = &v1.Constraints{KKPVersion: ">= 2.32"}
		})}, standard, "Remove web 1.1.0>"},
		{"the platform's version is not known while constrained", []func(*v1.AddonSet, *place){mine("1.1.0"), only(func(of *v1.AddonSet) {
			of.Spec.Constraints = &v1.Constraints{KKPVersion: ">= 2.32"}
		})}, func() *offers {
			unknown := offering(entryOf(t, "web", "1.0.0", "1.1.0"))
			unknown.kkp = ""
			return unknown
		}(), "unknown"},
		{"only core add-ons come from a Core catalogue", nil, func() *offers {
			core := offering(entryOf(t, "web", "1.0.0"))
			core.entries["web"].Type = v1.CatalogueCore
			return core
		}(), "Blocked web " + v1.ExcludedCore},
		{"constrained away", []func(*v1.AddonSet, *place){mine("1.1.0"), only(func(of *v1.AddonSet) {
			of.Spec.Constraints = &v1.Constraints{K8sVersion: "1.37"}
		})}, standard, "Remove web 1.1.0>"},
		{"a source without fixed content can't be staged", []func(*v1.AddonSet, *place){only(func(of *v1.AddonSet) {
			of.Spec.Rollout = &v1.Rollout{}
		})}, func() *offers {
			moving := offering(entryOf(t, "web", "1.0.0"))
			moving.entries["web"].Addon.Versions[0].Source = &v1.Source{Git: &v1.GitSource{Ref: &v1.GitRef{Branch: "main"}}}
			return moving
		}(), "Blocked web SourceMoves"},
	} {
		t.Run(test.why, func(t *testing.T) {
			of, in := web(), clusterOn("v1.36.3")
			for _, change := range test.changes {
				change(of, in)
			}
			sets := reading(t, of)
			got := planner{newResolver(sets["tools"], test.offers), newCompetitors(sets)}.planFor(in)
			if text := reported(&got); text != test.want {
				t.Errorf("\n got: %s\nwant: %s", text, test.want)
			}
		})
	}
}

// TestWhatAnItemMayDo fails when an item's installations do not get the rights that the set allows it, or get more;
// and when granting one is no move.
func TestWhatAnItemMayDo(t *testing.T) {
	from := offering(entryOf(t, "web", "1.0.0"))
	digests := map[string]string{}
	for _, test := range []struct {
		allow []v1.Permission
		want  map[string]string
	}{
		{nil, map[string]string{}},
		{[]v1.Permission{v1.PermissionAdopt, v1.PermissionPrune}, map[string]string{v1.AnnotationAdopt: "true", v1.AnnotationAllowPrune: "true"}},
		{[]v1.Permission{v1.PermissionDowngrade}, map[string]string{v1.AnnotationAllowDowngrade: "true"}},
	} {
		item := itemOf("web", "web", "")
		item.Allow = test.allow
		sets := reading(t, setNamed("tools", item))
		got := planner{newResolver(sets["tools"], from), newCompetitors(sets)}.planFor(clusterOn("v1.36.3"))
		if text := reported(&got); text != "Install web >1.0.0" {
			t.Fatalf("allowed %q: %s", test.allow, text)
		}
		if given := got.steps[0].intent(target.Ref{Namespace: "there"}).Annotations; !maps.Equal(given, test.want) {
			t.Errorf("allowed %q, it is given %v", test.allow, given)
		}
		digest := got.steps[0].target.digest
		if other, isKnown := digests[digest]; isKnown {
			t.Errorf("allowed %q, it is the same as %s", test.allow, other)
		}
		digests[digest] = fmt.Sprint(test.allow)
	}
}

// TestWhatAClusterAsksFor fails when annotation initial-installations is not read entry by entry, or when an invalid
// entry requests an add-on.
func TestWhatAClusterAsksFor(t *testing.T) {
	for text, want := range map[string][]asked{
		"":                     nil,
		"{":                    nil,
		`{"name":"web"}`:       nil,
		`[{"name":["web"]},7]`: nil,
		`[{"name":"mine","addonRef":{"name":"web","version":"1.x"},"targetNamespace":"there","values":{"a":1}},"no",{"name":"other"}]`: {
			{name: "mine", addon: "web", targetNamespace: "there"}, {name: "other"},
		},
	} {
		if got := askedBy(map[string]string{v1.AnnotationInitialInstallations: text}); !slices.Equal(got, want) {
			t.Errorf("%s asks for %+v", text, got)
		}
	}
}

// TestTheSameAddonInTheSameNamespaceNamesAWayOut fails when the message advises a set to adopt the installation of
// another set, which no user deletes by hand, or to rename an item that has the add-on and the namespace of an
// installation with another name.
func TestTheSameAddonInTheSameNamespaceNamesAWayOut(t *testing.T) {
	from := offering(entryOf(t, "web", "1.0.0"))
	tools, other, in := setNamed("tools", itemOf("front", "web", "")), setNamed("other", itemOf("web", "web", "")), clusterOn("v1.36.3")
	in.live["web"] = observationOf(madeBy(t, other, from, in, "1.0.0"))
	const taken = `installation "web" has add-on "web" in namespace "there" already`
	for _, test := range []struct {
		sets []*v1.AddonSet
		want string
	}{
		{[]*v1.AddonSet{tools, other}, taken +
			`, by AddonSet "other": give one of the two items another targetNamespace, or remove it from its set`},
		{[]*v1.AddonSet{tools}, taken + ": give the item another targetNamespace, or " + howToAdopt},
	} {
		sets := reading(t, test.sets...)
		got := planner{newResolver(sets["tools"], from), newCompetitors(sets)}.planFor(in)
		if len(got.blocked) != 1 || got.blocked[0].Message != test.want {
			t.Errorf("it says %+v, want %s", got.blocked, test.want)
		}
	}
}

// TestWhatCanNotBeIsNotBegun fails when an item that depends on a blocked item, or on one that another set has not
// created yet, is installed: it would wait without end, and count as a failure that halts the fleet; or when an
// installation is removed that the set of an unusable copy may claim.
func TestWhatCanNotBeIsNotBegun(t *testing.T) {
	from := offering(entryOf(t, "web", "1.0.0"), entryOf(t, "crds", "1.0.0"))
	crds, web, page := itemOf("crds", "crds", ""), itemOf("web", "web", ""), itemOf("page", "web", "")
	web.DependsOn, page.DependsOn = []v1.AddonName{"crds"}, []v1.AddonName{"web"}
	of, in := setNamed("tools", page, web, crds), clusterOn("v1.36.3")
	foreign := &v1.AddonInstallation{}
	foreign.Name = "crds"
	in.live["crds"] = observationOf(foreign)
	sets := reading(t, of)
	got := planner{newResolver(sets["tools"], from), newCompetitors(sets)}.planFor(in)
	want := "Blocked crds NameTaken, Blocked page DependencyMissing, Blocked web DependencyMissing"
	if text := reported(&got); text != want {
		t.Errorf("\n got: %s\nwant: %s", text, want)
	}

	other, there := setNamed("other", crds), clusterOn("v1.36.3")
	other.Spec.Priority = 1
	sets = reading(t, of, other)
	for _, want := range []string{"Blocked page DependencyMissing, Blocked web DependencyMissing", "Install page >1.0.0, Install web >1.0.0"} {
		got := planner{newResolver(sets["tools"], from), newCompetitors(sets)}.planFor(there)
		if text := reported(&got); text != want {
			t.Errorf("beside a set that has the name of one:\n got: %s\nwant: %s", text, want)
		}
		made := &v1.AddonInstallation{} // after the other set created it
		made.Name, made.Labels = "crds", map[string]string{v1.LabelManagedBy: v1.ManagedBySets, v1.LabelSet: "other"}
		there.live["crds"] = observationOf(made)
	}

	alone := setNamed("tools", itemOf("web", "web", ""))
	here := clusterOn("v1.36.3")
	here.live["web"] = observationOf(madeBy(t, alone, from, here, "1.0.0"))
	alone.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "large"}}
	for _, test := range uncertainCopies(t) {
		sets := reading(t, alone)
		competitors := newCompetitors(sets)
		competitors.unknown = []*claims{test.unknown}
		got := planner{newResolver(sets["tools"], from), competitors}.planFor(here)
		want := "Remove web 1.0.0>"
		if test.holds {
			want = "Blocked web SetUnreadable"
		}
		if text := reported(&got); text != want || got.isHeld != test.holds {
			t.Errorf("beside a copy %s: %s", test.why, text)
		}
	}
}

// doubtful is an unusable copy. It reports whether the copy holds item web that another set drops in clusters of tier
// small, and whether it prevents that set from creating it.
type uncertain struct {
	why           string
	unknown       *claims
	holds, isLast bool
}

func uncertainCopies(t *testing.T) []uncertain {
	t.Helper()
	edited, withRevision, wants := setNamed("edited", itemOf("page", "web", "")), setNamed("edited"), setNamed("edited", itemOf("web", "web", ""))
	withRevision.Status.Revision = "1"
	wanting := reading(t, wants)["edited"]
	elsewhere, unreadable, younger := wants.DeepCopy(), wants.DeepCopy(), wants.DeepCopy()
	elsewhere.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "large"}}
	unreadable.Spec.ClusterSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "No"}}}
	unreadable.Spec.Constraints = &v1.Constraints{K8sVersion: "1.37", KKPVersion: "no range"}
	younger.CreationTimestamp = metav1.NewTime(noon.Add(time.Hour))
	other := reading(t, elsewhere)["edited"]
	return []uncertain{
		{"of another name", claimsOf(edited, nil, nil), false, true},
		{"of its name", claimsOf(wants, nil, nil), true, false},
		{"of its name, which comes after it", claimsOf(younger, nil, nil), true, true},
		{"of its name, in other clusters", claimsOf(elsewhere, nil, nil), false, true},
		{"of its name, in other clusters before it was edited", claimsOf(edited, nil, other), false, true},
		{"of its name, in clusters that can't be read", claimsOf(unreadable, nil, nil), true, false},
		{"of its name, before it was edited", claimsOf(edited, nil, wanting), true, false},
		{"of its name, before it was edited again", claimsOf(edited, claimsOf(edited, nil, wanting), nil), true, false},
		{"of its name, that was not taken yet", &claims{set: "edited", now: wanting, pending: true}, true, false},
		{"of its name, before it was taken", claimsOf(edited, &claims{set: "edited", now: wanting, pending: true}, nil), true, false},
		{"of which an earlier process went by something", claimsOf(withRevision, nil, nil), true, true},
		{"of which this process knows it", claimsOf(withRevision, claimsOf(edited, nil, nil), nil), false, true},
	}
}

// TestWhatMayBeAnothersIsNotMade fails when a set creates, or adopts, an installation that an unusable copy with
// precedence may claim; when a copy without precedence, or one that claims it elsewhere, prevents that; or when the
// copy no longer keeps its own.
func TestWhatMayBeAnothersIsNotMade(t *testing.T) {
	from := offering(entryOf(t, "web", "1.0.0", "1.1.0"))
	mine := setNamed("tools", itemOf("web", "web", "1.x"))
	left := setNamed("left", itemOf("web", "web", "1.x"))
	left.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "large"}}
	sets := reading(t, mine, left)
	for _, test := range uncertainCopies(t) {
		competitors := newCompetitors(sets)
		competitors.unknown = []*claims{test.unknown}
		for _, one := range []struct {
			why, want string
			live      *v1.AddonSet
			isHeld    bool
		}{
			{"nothing", "Install web >1.1.0", nil, !test.isLast},
			{"another set's", "Update web 1.0.0>1.1.0", left, !test.isLast},
			{"its own", "Update web 1.0.0>1.1.0", mine, false},
		} {
			here := clusterOn("v1.36.3")
			if one.live != nil {
				here.live["web"] = observationOf(madeBy(t, one.live, from, here, "1.0.0"))
			}
			if one.isHeld {
				one.want = "Blocked web SetUnreadable"
			}
			got := planner{newResolver(sets["tools"], from), competitors}.planFor(here)
			if text := reported(&got); text != one.want {
				t.Errorf("beside a copy %s, where there is %s: %s, want %s", test.why, one.why, text, one.want)
			}
		}
	}
}

// TestTwoSetsWantOneName fails when the wrong one has it, or when an installation that changes its set is removed.
func TestTwoSetsWantOneName(t *testing.T) {
	standard := offering(entryOf(t, "web", "1.0.0"))
	for _, test := range []struct {
		why        string
		change     func(first, second *v1.AddonSet, in *place)
		one, other string
	}{
		{"the older by name", func(_, _ *v1.AddonSet, _ *place) {}, "Install web >1.0.0", ""},
		{"the higher priority", func(_, second *v1.AddonSet, _ *place) { second.Spec.Priority = 1 }, "", "Install web >1.0.0"},
		{"the older", func(first, _ *v1.AddonSet, _ *place) {
			first.CreationTimestamp = metav1.NewTime(noon.Add(time.Second))
		}, "", "Install web >1.0.0"},
		{"it goes over with the other's move", func(first, second *v1.AddonSet, in *place) {
			in.live["web"] = observationOf(madeBy(t, first, standard, in, "1.0.0"))
			second.Spec.Priority = 1
		}, "", "Update web 1.0.0>1.0.0"},
		{"the one is deleted, the other wants it", func(first, _ *v1.AddonSet, in *place) {
			in.live["web"] = observationOf(madeBy(t, first, standard, in, "1.0.0"))
			at := metav1.NewTime(noon)
			first.DeletionTimestamp = &at
		}, "", "Update web 1.0.0>1.0.0"},
		{"as another release it can't go over", func(first, second *v1.AddonSet, in *place) {
			in.live["web"] = observationOf(madeBy(t, first, standard, in, "1.0.0"))
			second.Spec.Priority, second.Spec.Addons[0].ReleaseName = 1, "other"
		}, "Remove web 1.0.0>", "Blocked web NameTaken"},
	} {
		t.Run(test.why, func(t *testing.T) {
			first, second, in := setNamed("a", itemOf("web", "web", "1.x")), setNamed("b", itemOf("web", "web", "1.x")), clusterOn("v1.36.3")
			test.change(first, second, in)
			sets := reading(t, first, second)
			one := planner{newResolver(sets["a"], standard), newCompetitors(sets)}.planFor(in)
			other := planner{newResolver(sets["b"], standard), newCompetitors(sets)}.planFor(in)
			if got := reported(&one); got != test.one {
				t.Errorf("the one: got %q, want %q", got, test.one)
			}
			if got := reported(&other); got != test.other {
				t.Errorf("the other: got %q, want %q", got, test.other)
			}
		})
	}
}

// TestNoOrderDecides fails when plans depend on the order in which sets were read or clusters visited, or when two
// sets would write one installation.
func TestNoOrderDecides(t *testing.T) {
	standard := offering(entryOf(t, "web", "1.0.0", "1.1.0"), entryOf(t, "db", "1.0.0 <1.37", "2.0.0"))
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		var all []*v1.AddonSet
		for i := range 1 + random.IntN(4) {
			items := []v1.AddonSetItem{itemOf("web", "web", "1.x"), itemOf("db", "db", "")}
			one := setNamed(fmt.Sprintf("set-%d", i), items[:1+random.IntN(2)]...)
			one.Spec.Priority = int32(random.IntN(2))
			if random.IntN(2) == 0 {
				one.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"ring": fmt.Sprint(random.IntN(2))}}
			}
			all = append(all, one)
		}
		var places []*place
		for i := range 5 {
			in := clusterOn([]string{"v1.36.3", "v1.37.0", ""}[random.IntN(3)])
			in.name, in.labels = fmt.Sprintf("c%d", i), labels.Set{"ring": fmt.Sprint(i % 2)}
			if random.IntN(2) == 0 {
				in.live["web"] = observationOf(madeBy(t, all[random.IntN(len(all))], standard, in, "1.0.0"))
			}
			places = append(places, in)
		}
		plans := func() string {
			random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			random.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
			sets := reading(t, all...)
			competitors := newCompetitors(sets)
			var words []string
			written := map[string]string{}
			for _, one := range all {
				resolved := newResolver(sets[one.Name], standard)
				for _, in := range places {
					found := planner{resolved, competitors}.planFor(in)
					words = append(words, fmt.Sprintf("%s in %s: %s", one.Name, in.name, reported(&found)))
					for _, step := range found.steps {
						key := in.name + "/" + step.item
						if before := written[key]; before != "" {
							t.Errorf("seed %d: %s and %s both write %s", seed, before, one.Name, key)
						}
						written[key] = one.Name
					}
				}
			}
			slices.Sort(words)
			return strings.Join(words, "\n")
		}
		if first, again := plans(), plans(); first != again {
			t.Fatalf("seed %d:\n%s\n\n%s", seed, first, again)
		}
	}
}

// TestWhatIsANewRevision fails when an edit of a set's pace or order restarts it, or when an edit of the content for
// clusters does not.
func TestWhatIsANewRevision(t *testing.T) {
	base := []string{"1.0.0", "1.1.0"}
	of := func(change func(*v1.AddonSet), from *offers) string {
		one := setNamed("tools", itemOf("web", "web", "1.x"))
		change(one)
		contents, err := contentsOf(reading(t, one)["tools"], from, map[string]string{"web": "before"})
		if err != nil {
			t.Fatal(err)
		}
		revision, err := revisionOf(&one.Spec, contents, from.kkp)
		if err != nil {
			t.Fatal(err)
		}
		return revision
	}
	same := func(*v1.AddonSet) {}
	before := of(same, offering(entryOf(t, "web", base...)))
	later := offering(entryOf(t, "web", base...))
	later.kkp = "2.32.0"
	for _, test := range []struct {
		why    string
		change func(*v1.AddonSet)
		offers *offers
		isNew  bool
	}{
		{"nothing", same, offering(entryOf(t, "web", base...)), false},
		{"paused", func(one *v1.AddonSet) { one.Spec.Paused = true }, offering(entryOf(t, "web", base...)), false},
		{"removal", func(one *v1.AddonSet) { one.Spec.Removal = v1.RemovalOrphan }, offering(entryOf(t, "web", base...)), false},
		{"rollout", func(one *v1.AddonSet) { one.Spec.Rollout = &v1.Rollout{} }, offering(entryOf(t, "web", base...)), false},
		{"a version out of range", same, offering(entryOf(t, "web", "1.0.0", "1.1.0", "2.0.0")), false},
		{"a deprecation", same, offering(entryOf(t, "web", "1.0.0", "1.1.0!")), false},
		{"a version in range", same, offering(entryOf(t, "web", "1.0.0", "1.1.0", "1.2.0")), true},
		{"constraints of one", same, offering(entryOf(t, "web", "1.0.0", "1.1.0 >=1.37")), true},
		{"the platform's version", same, later, true},
		{"values", func(one *v1.AddonSet) { one.Spec.Addons[0].Values = &runtime.RawExtension{Raw: []byte(`{"a":1}`)} },
			offering(entryOf(t, "web", base...)), true},
		{"the selector", func(one *v1.AddonSet) { one.Spec.ClusterSelector.MatchLabels = map[string]string{"a": "b"} },
			offering(entryOf(t, "web", base...)), true},
	} {
		if got := of(test.change, test.offers); (got != before) != test.isNew {
			t.Errorf("%s: a new revision is %t, want %t", test.why, got != before, test.isNew)
		}
	}
}

// TestClustersAlikeHaveOneChoiceAndOneIntent: Bar 3: Select is called once for each version of Kubernetes and each
// installed version, for any number of clusters, and one intent is created for all. The test fails when a choice
// depends on a cluster's name, namespace or labels, and when the choice is not applied.
func TestClustersAlikeHaveOneChoiceAndOneIntent(t *testing.T) {
	from := offering(entryOf(t, "web", "1.0.0", "1.0.1", "1.0.2", "1.1.0 >= 1.37"), entryOf(t, "log", "1.0.0"))
	all := setNamed("all", itemOf("web", "web", "1.x"), itemOf("log", "log", "1.x"))
	read := reading(t, all)
	asked := planner{newResolver(read["all"], from), newCompetitors(read)}
	calls, intents := map[string]int{}, map[*prepared]bool{}
	asked.selects = func(
		entry *catalogue.Entry, wanted, installed string, platform catalogue.Platform, options catalogue.SelectOptions,
	) (catalogue.Selection, catalogue.Refusal) {
		calls[fmt.Sprintf("%s %q on %s", entry.Addon.Name, installed, platform.K8sVersion)]++
		return catalogue.Select(entry, wanted, installed, platform, options)
	}
	for i := range 1000 {
		in := clusterOn(fmt.Sprintf("v1.%d.0", 35+i%4))
		in.name, in.ref.Namespace = fmt.Sprintf("birch-%d", i), fmt.Sprintf("cluster-birch-%d", i)
		in.labels = labels.Set{"number": fmt.Sprint(i)}
		if installed := []string{"", "1.0.0", "1.0.1"}[i/4%3]; installed != "" {
			in.live["web"] = observationOf(madeBy(t, all, from, in, installed))
		}
		planned := asked.planFor(in)
		for _, step := range planned.steps {
			intents[step.target] = true
		}
		if len(planned.steps) != 2 || len(planned.blocked) > 0 {
			t.Fatalf("the plan of %s is %s", in.name, reported(&planned))
		}
	}
	for call, times := range calls {
		if times != 1 {
			t.Errorf("Select was called %d times for %s", times, call)
		}
	}
	if have := len(calls); have != 16 {
		t.Errorf("Select chose %d times, want web with 3 versions installed and log with none, on 4 versions of Kubernetes: %v", have, calls)
	}
	if have := len(intents); have != 3 {
		t.Errorf("%d intents were made, want 2 versions of web and 1 of log", have)
	}
}
