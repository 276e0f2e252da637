package coreaddon

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
	"github.com/trellis-addons/trellis/pkg/fleet/waves"
	"github.com/trellis-addons/trellis/test/given"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// entryOf is an entry of a Core catalogue: versions, each with its image.
func entryOf(t *testing.T, addon string, versions ...[2]string) *catalogue.Entry {
	t.Helper()
	about := v1.Addon{Name: v1.AddonName(addon)}
	for _, one := range versions {
		about.Versions = append(about.Versions, given.Version(one[0], &v1.Source{Docker: &v1.ImageSource{Image: one[1]}}))
	}
	entry, err := catalogue.NewEntry(&v1.AddonCatalogue{
		ObjectMeta: metav1.ObjectMeta{Name: addon, Annotations: map[string]string{v1.AnnotationKKPVersion: "2.31.0"}},
		Spec:       v1.AddonCatalogueSpec{Type: v1.CatalogueCore, Addons: []v1.Addon{about}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return entry
}

// listing is a list of these add-ons, each as an item of its name.
func listing(addons ...string) listState {
	state := listState{Read: true}
	for _, addon := range addons {
		state.Items = append(state.Items, item{name: addon, selector: labels.Everything(), spec: specOf(addon)})
	}
	return state
}

// placeWith is a cluster that is older than the revision, with a rollout and a list.
func placeWith(list listState, live ...v1.AddonInstallation) place {
	kkp := fullCluster()
	bare(kkp)
	wants := setFor(described(kkp), list, "")
	wants.wanted = slices.DeleteFunc(wants.wanted, func(one wanted) bool { return one.origin == v1.OriginRule })
	return place{
		k8s: "v1.37.0", set: wants, installations: live, created: noon.Add(-24 * time.Hour), startedAt: noon,
		grace: 30 * time.Minute, isStaged: true,
	}
}

// pinnedTo is an installation of the list, pinned at its applied version.
func pinnedTo(name, version, content string, changes ...func(*v1.AddonInstallation)) v1.AddonInstallation {
	one := wanted{name: name, origin: v1.OriginList, spec: specOf(name)}
	one.spec.AddonRef.Version, one.spec.AddonRef.Digest = version, content
	live := madeOf(one)
	live.UID, live.CreationTimestamp = types.UID(name), metav1.NewTime(noon.Add(-time.Hour))
	live.Status.LastApplied = &v1.AppliedState{Version: version, EntryDigest: content}
	for _, change := range changes {
		change(&live)
	}
	return live
}

// reportMove describes the writes to a cluster: a name for each installation, with its version.
func reportMove(p *plan) string {
	var reported []string
	for _, one := range p.apply {
		verb := "make"
		if one.live != nil {
			verb = "move"
		}
		if one.stays {
			verb = "hold"
		}
		reported = append(reported, fmt.Sprintf("%s %s %s", verb, one.wanted.name, one.wanted.spec.AddonRef.Version))
	}
	for _, one := range p.remove {
		reported = append(reported, "remove "+one.Name)
	}
	for _, one := range p.release {
		reported = append(reported, "release "+one.Name)
	}
	slices.Sort(reported)
	return fmt.Sprint(reported)
}

func allowed(v bool) func(*v1.AddonInstallation) bool {
	return func(*v1.AddonInstallation) bool { return v }
}

// TestWhatCantBeStagedIsBlocked: a version whose source can change without the catalogue. The test fails when an
// existing cluster gets it or moves to it, or when a new cluster does not get it.
func TestWhatCantBeStagedIsBlocked(t *testing.T) {
	offered := &offers{kkp: "2.31.0", entries: map[string]*catalogue.Entry{
		"net": entryOf(t, "net", [2]string{"1.0.0", "registry.example/net:1"}, [2]string{"2.0.0", "registry.example/net"}),
	}}
	for _, test := range []struct {
		why    string
		live   []v1.AddonInstallation
		change func(*place)
		want   string
		blocks bool
	}{
		{"what is there stays", []v1.AddonInstallation{pinnedTo("net", "1.0.0", "old")}, nil, "[]", true},
		{"what is not there is not made", nil, nil, "[]", true},
		{"but in a new cluster", nil, func(s *place) { s.created = noon.Add(time.Minute) }, "[make net 2.0.0]", true},
		{"without a rollout nothing is staged", []v1.AddonInstallation{pinnedTo("net", "1.0.0", "old")},
			func(s *place) { s.isStaged = false }, "[move net 2.0.0]", false},
	} {
		t.Run(test.why, func(t *testing.T) {
			at := placeWith(listing("net"), test.live...)
			if test.change != nil {
				test.change(&at)
			}
			made := stageFor(offered, at)
			moves := made.moving(allowed(true))
			if reported := reportMove(&moves); reported != test.want {
				t.Errorf("it writes %s, want %s", reported, test.want)
			}
			blocks := len(made.blocked) == 1 && made.blocked[0].Reason == v1.ReasonSourceMoves
			if blocks != test.blocks {
				t.Errorf("blocked: %+v", made.blocked)
			}
		})
	}
}

// TestWhoMayDeleteACoreAddonFailsNoCluster fails when a deletion that the protection holds counts as a move: after
// the deadline the cluster would have failed, and halted the others.
func TestWhoMayDeleteACoreAddonFailsNoCluster(t *testing.T) {
	entry := entryOf(t, "net", [2]string{"1.0.0", "registry.example/net:1"})
	_, origin := entry.Version("1.0.0")
	live := pinnedTo("net", "1.0.0", origin.Content, func(live *v1.AddonInstallation) {
		live.DeletionTimestamp = &metav1.Time{Time: noon.Add(time.Minute)}
		live.Annotations[v1.AnnotationMoved] = noon.Add(time.Second).Format(time.RFC3339Nano)
		live.Status.Conditions = []metav1.Condition{{
			Type: v1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1.ReasonReady, LastTransitionTime: metav1.NewTime(noon),
		}}
	})
	made := stageFor(&offers{entries: map[string]*catalogue.Entry{"net": entry}}, placeWith(listing("net"), live))
	strategy, err := rollout.NewStrategy(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, after := range []time.Duration{10 * time.Minute, 24 * time.Hour} {
		found := waves.ClusterStatusOf(waves.Facts{Presence: waves.Present, Mine: made.mine, Changes: made.changes}, waves.Course{
			Strategy: strategy, StartedAt: noon, Now: noon.Add(after),
		})
		if found.State != v1.ClusterCurrent {
			t.Errorf("%s later the cluster is %s", after, found.State)
		}
	}
}

// TestRemovalsThatWaitAreHeld fails when a removal without approval is part of its cluster's move, or when a removed
// installation is pinned in the same reconciliation, which would recreate it.
func TestRemovalsThatWaitAreHeld(t *testing.T) {
	offered := &offers{kkp: "2.31.0", entries: map[string]*catalogue.Entry{"net": entryOf(t, "net", [2]string{"2.0.0", "registry.example/net:2"})}}
	old := pinnedTo("old", "1.0.0", "x", func(live *v1.AddonInstallation) {
		live.Spec.AddonRef = v1.AddonReference{Name: "old"} // not pinned yet
		live.Status.LastApplied.VolumeClaims = 1
	})
	made := stageFor(offered, placeWith(listing("net"), pinnedTo("net", "1.0.0", "y"), old))
	if len(made.removals) != 1 || !made.removals[0].HasVolumes || made.removals[0].ID != "old" {
		t.Errorf("the guard sees %+v", made.removals)
	}
	for _, test := range []struct {
		approved bool
		want     string
	}{{false, "[hold old 1.0.0 move net 2.0.0]"}, {true, "[move net 2.0.0 remove old]"}} {
		moves := made.moving(allowed(test.approved))
		if reported := reportMove(&moves); reported != test.want {
			t.Errorf("approved %t: it writes %s, want %s", test.approved, reported, test.want)
		}
	}
	if reported := reportMove(&made.hold); reported != "[hold old 1.0.0]" {
		t.Errorf("before its move it writes %s", reported)
	}
}

// TestAClusterThatIsBeingMadeIsNew fails when a cluster without a network waits for its wave, or when an old one
// moves first.
func TestAClusterThatIsBeingMadeIsNew(t *testing.T) {
	since := func(live *v1.AddonInstallation) {
		live.CreationTimestamp = metav1.NewTime(noon.Add(time.Second))
		live.Annotations[v1.AnnotationMoved] = noon.Add(time.Second).Format(time.RFC3339Nano)
	}
	before, after := pinnedTo("net", "1.0.0", "x"), pinnedTo("net", "1.0.0", "x", since)
	for _, test := range []struct {
		why     string
		created time.Duration
		live    []v1.AddonInstallation
		want    bool
	}{
		{"younger than the revision", time.Minute, []v1.AddonInstallation{before}, true},
		{"it was being made when the revision began", -10 * time.Minute, nil, true},
		{"and has some of it since", -10 * time.Minute, []v1.AddonInstallation{after}, true},
		{"it had some before", -10 * time.Minute, []v1.AddonInstallation{after, before}, false},
		{"it has none and is old", -time.Hour, nil, false},
	} {
		at := placeWith(listing("net"), test.live...)
		at.created = noon.Add(test.created)
		made := stageFor(&offers{entries: map[string]*catalogue.Entry{}}, at)
		if made.isNew != test.want || made.age(&at).After(noon) != test.want {
			t.Errorf("%s: %t", test.why, made.isNew)
		}
	}
}

// TestWhatIsNotKnownOfTheSeedHoldsAnItem fails when an item that selects by the name of the seed removes or creates
// an installation while that is unknown.
func TestWhatIsNotKnownOfTheSeedHoldsAnItem(t *testing.T) {
	kkp := fullCluster()
	bare(kkp)
	for _, test := range []struct{ selector, seed, want string }{
		{v1.FactSeed + "=a", "a", "made"},
		{v1.FactSeed + "=a", "b", ""},
		{v1.FactSeed + "=a", "", "held"},
		{v1.FactSeed + "!=a", "", "held"},
		{v1.FactSeed + "=a,tier=none", "", ""},
	} {
		selector, err := labels.Parse(test.selector)
		if err != nil {
			t.Fatal(err)
		}
		found := setFor(described(kkp), listState{Read: true, Items: []item{{name: "rbac", selector: selector, spec: specOf("rbac")}}}, test.seed)
		got := ""
		if one := found.find("rbac"); one != nil && one.origin == v1.OriginList {
			got = "made"
		} else if found.held["rbac"] != "" && one == nil {
			got = "held"
		}
		if got != test.want {
			t.Errorf("%s on seed %q: %q, want %q", test.selector, test.seed, got, test.want)
		}
	}
}

// TestAReconciliationOfTheSetCostsTheSameInLargeFleets fails when an event of one cluster visits all.
func TestAReconciliationOfTheSetCostsTheSameInLargeFleets(t *testing.T) {
	cost := func(clusters int) float64 {
		r := New(Dependencies{})
		f := &setFacts{coreCopy: coreCopy{set: &v1.AddonSet{}}}
		f.run = begin(f.set, time.Second)
		f.run.counted, f.run.paused = true, false
		r.staging.run = f.run
		current := waves.ClusterStatus{ClusterStatus: rollout.ClusterStatus{State: v1.ClusterCurrent}}
		put := func(name string) {
			f.run.known(target.Ref{Kind: target.KindKKP, Namespace: "cluster-" + name, Name: name}).SetStatus(current, time.Time{}, noon)
			f.run.guard.Note(name, waves.Holding{Installations: 1}, nil)
			f.run.tally.Put(name, current.ClusterStatus)
		}
		for i := range clusters {
			put(fmt.Sprint("c", i))
		}
		return testing.AllocsPerRun(20, func() {
			put("c0")
			if outcome := r.count(t.Context(), f); outcome != nil {
				t.Fatalf("counting ends the pass: %+v", outcome)
			}
			r.decide(t.Context(), f)
		})
	}
	if small, large := cost(100), cost(10_000); large > 1.5*small {
		t.Errorf("a pass allocates %v times with 100 clusters, %v times with 10,000", small, large)
	}
}

// TestWhatCantBeChangedIsBlocked: the list gives an item another namespace. The test fails when a cluster's move
// writes it, or waits for it, when the cluster does not report it, and when the installation loses its pin.
func TestWhatCantBeChangedIsBlocked(t *testing.T) {
	offered := &offers{kkp: "2.31.0", entries: map[string]*catalogue.Entry{"net": entryOf(t, "net", [2]string{"2.0.0", "registry.example/net:2"})}}
	for name, live := range map[string]v1.AddonInstallation{
		"pinned": pinnedTo("net", "1.0.0", "old", func(live *v1.AddonInstallation) { live.Spec.TargetNamespace = "other" }),
		"not yet": pinnedTo("net", "1.0.0", "old", func(live *v1.AddonInstallation) {
			live.Spec.TargetNamespace, live.Spec.AddonRef = "other", v1.AddonReference{Name: "net"}
		}),
		"released as": pinnedTo("net", "1.0.0", "old", func(live *v1.AddonInstallation) { live.Spec.ReleaseName = "other" }),
	} {
		made := stageFor(offered, placeWith(listing("net"), live))
		want := "[]"
		if live.Spec.AddonRef.Digest == "" {
			want = "[hold net 1.0.0]"
		}
		moves := made.moving(allowed(true))
		if reported, held := reportMove(&moves), reportMove(&made.hold); reported != want || held != want {
			t.Errorf("%s: it writes %s, and %s before its move, want %s", name, reported, held, want)
		}
		for _, one := range moves.apply {
			if one.wanted.spec.TargetNamespace != live.Spec.TargetNamespace || one.wanted.spec.AddonRef.Digest != "old" {
				t.Errorf("%s: the pin is %+v", name, one.wanted.spec)
			}
		}
		if len(made.changes) > 0 || len(made.blocked) != 1 || made.blocked[0].Reason != v1.ReasonImmutableField || made.blocked[0].Item != "net" {
			t.Errorf("%s: it changes %+v, blocked %+v", name, made.changes, made.blocked)
		}
	}
}

// TestWhatIsChangedOnItsWayIsNoNewMove: a policy pauses an installation of the set, which is not applied yet. The
// test fails when reverting that is a move: its time would restart with each try.
func TestWhatIsChangedOnItsWayIsNoNewMove(t *testing.T) {
	entry := entryOf(t, "net", [2]string{"2.0.0", "registry.example/net:2"})
	_, origin := entry.Version("2.0.0")
	live := pinnedTo("net", "2.0.0", origin.Content, func(live *v1.AddonInstallation) {
		live.Spec.Paused = true
		live.Status.LastApplied = &v1.AppliedState{Version: "1.0.0", EntryDigest: "old"}
	})
	made := stageFor(&offers{kkp: "2.31.0", entries: map[string]*catalogue.Entry{"net": entry}}, placeWith(listing("net"), live))
	moves := made.moving(allowed(true))
	if reported := reportMove(&moves); reported != "[hold net 2.0.0]" || len(made.changes) > 0 {
		t.Errorf("it writes %s, and changes %+v", reported, made.changes)
	}
}

// TestABasisIsTakenOnce fails when each reconciliation computes the basis of a revision again after an edit of a
// catalogue without effect.
func TestABasisIsTakenOnce(t *testing.T) {
	offering := func() *offers {
		return &offers{
			kkp: "2.31.0", list: listState{Read: true},
			entries: map[string]*catalogue.Entry{"net": entryOf(t, "net", [2]string{"1.0.0", "registry.example/net:1"})},
		}
	}
	r := New(Dependencies{})
	f := &setFacts{coreCopy: coreCopy{set: &v1.AddonSet{}}, offers: offering()}
	f.run = begin(f.set, time.Second)
	f.run.counted, f.run.spec.Type = true, v1.AddonSetCore
	f.run.offers, f.run.seen = f.offers, f.offers
	var err error
	if f.run.basis, err = basisOf(f.offers, nil); err != nil {
		t.Fatal(err)
	}
	if f.run.revision, err = revisionOf(&f.run.spec, f.run.basis); err != nil {
		t.Fatal(err)
	}
	f.offers = offering()
	revise := func() {
		if outcome := r.revise(t.Context(), f); outcome != nil || !f.run.counted {
			t.Fatalf("it ends the pass with %+v, counted %t", outcome, f.run.counted)
		}
	}
	revise()
	if cost := testing.AllocsPerRun(10, revise); cost > 5 {
		t.Errorf("a pass in which nothing changed allocates %v times", cost)
	}
}

// TestACoreSetBridgesAnUpgrade: while the control plane waits for add-ons, a Core set moves at once to versions that
// fit both sides of the upgrade. The test fails when only the later version counts, and when the move waits for a
// place.
func TestACoreSetBridgesAnUpgrade(t *testing.T) {
	entry := entryOf(t, "net", [2]string{"1.0.0", "registry.example/net:1"}, [2]string{"1.1.0", "registry.example/net:2"},
		[2]string{"1.2.0", "registry.example/net:3"})
	fits := map[string]string{"1.0.0": "< 1.38", "1.1.0": ">= 1.37, < 1.39", "1.2.0": "~1.37"}
	for i := range entry.Addon.Versions {
		one := &entry.Addon.Versions[i]
		one.Constraints = &v1.Constraints{K8sVersion: v1.VersionRange(fits[one.Version])}
	}
	entry, err := catalogue.NewEntry(&v1.AddonCatalogue{
		ObjectMeta: metav1.ObjectMeta{Name: "net", Annotations: map[string]string{v1.AnnotationKKPVersion: "2.31.0"}},
		Spec:       v1.AddonCatalogueSpec{Type: v1.CatalogueCore, Addons: []v1.Addon{entry.Addon}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		why   string
		next  []string
		waits bool
		want  string
		unfit bool
	}{
		{"no upgrade", nil, false, "1.2.0", false},
		{"it waits", []string{"1.38.0"}, true, "1.1.0", true},
		{"it rolls", []string{"1.38.0"}, false, "1.1.0", false},
	} {
		at := placeWith(listing("net"), pinnedTo("net", "1.0.0", "old"))
		at.next, at.waits = test.next, test.waits
		made := stageFor(&offers{kkp: "2.31.0", entries: map[string]*catalogue.Entry{"net": entry}}, at)
		if len(made.changes) != 1 || made.changes[0].To != test.want || made.unfit != test.unfit {
			t.Errorf("%s: it changes %+v, at once: %v", test.why, made.changes, made.unfit)
		}
	}
}

// TestRemovalsOfTheListNameTheirItem fails when the guard can't determine that the last installation of an item of
// the list is removed, and when a removal by a rule, as for another network plugin, waits for that.
func TestRemovalsOfTheListNameTheirItem(t *testing.T) {
	byRule := func(live *v1.AddonInstallation) { live.Annotations[v1.AnnotationCoreOrigin] = v1.OriginRule }
	from := &offers{list: listing("dns"), entries: map[string]*catalogue.Entry{"dns": entryOf(t, "dns", [2]string{"1.0.0", "registry.example/dns:1.0.0"})}}
	made := stageFor(from, placeWith(from.list, pinnedTo("net", "1.0.0", "a"), pinnedTo("proxy", "1.0.0", "a", byRule)))
	items := map[string]string{}
	for _, one := range made.removals {
		items[one.ID] = one.Item
	}
	if len(items) != 2 || items["net"] != "net" || items["proxy"] != "" || !slices.Equal(made.keeps, []string{"dns"}) {
		t.Errorf("removals are of %v, and it keeps %q", items, made.keeps)
	}
}
