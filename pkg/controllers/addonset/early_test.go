package addonset

import (
	"testing"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/waves"
)

// upgrading is a Cluster outside of KKP whose upgrade to 1.37.1 waits for Trellis.
func upgrading() *place {
	in := clusterOn("1.36.3")
	in.ref.Kind = target.KindClusterAPI
	in.next, in.ahead, in.waits = []string{"1.37.1"}, []string{"1.37.1"}, true
	return in
}

// TestASetForTheNextKubernetesGoesFirst: There is one set per Kubernetes release. While the control plane waits, the
// set of the next release adopts the items that fit both sides of an upgrade, at once and in place. It keeps them
// during the upgrade, and has nothing to do after it. The test fails where only the cluster's present Kubernetes
// counts, where the older set takes an item back, where an item is adopted that can't be passed, and where an adopted
// one is removed.
func TestASetForTheNextKubernetesGoesFirst(t *testing.T) {
	t.Parallel()
	perRelease := func(name, kubernetes, version string) *v1.AddonSet {
		made := setNamed(name, itemOf("web", "web", version))
		made.Spec.Constraints = &v1.Constraints{K8sVersion: v1.VersionRange(kubernetes)}
		made.Spec.Rollout = &v1.Rollout{}
		return made
	}
	older := perRelease("a-36", "~1.36", "1.0.0")
	both := []string{"1.0.0 <1.37", "1.1.0 >=1.36, <1.38"}
	strict := []string{"1.0.0 <1.37", "1.1.0 >=1.37, <1.38"}
	there := func(in *place) { in.version, in.next, in.ahead, in.waits = "1.37.1", nil, nil, false }
	rolls := func(in *place) { in.next, in.waits = nil, false }
	for _, test := range []struct {
		why      string
		offered  []string
		another  bool // the newer set has another namespace for it
		by       string
		applied  string
		change   func(*place)
		old, new string
	}{
		{why: "no upgrade", offered: both, by: "a-36", applied: "1.0.0", change: func(in *place) { in.next, in.ahead, in.waits = nil, nil, false }},
		{why: "it waits", offered: both, by: "a-36", applied: "1.0.0", new: "Update web 1.0.0>1.1.0, unfit, early"},
		{why: "it was taken", offered: both, by: "b-37", applied: "1.1.0", new: "early"},
		{why: "it rolls", offered: both, by: "b-37", applied: "1.1.0", change: rolls, new: "early"},
		{why: "it rolls, and was not taken", offered: both, by: "a-36", applied: "1.0.0", change: rolls},
		{why: "it is there", offered: both, by: "b-37", applied: "1.1.0", change: there},
		{why: "it is there, and was not taken", offered: strict, by: "a-36", applied: "1.0.0", change: there, new: "Update web 1.0.0>1.1.0, unfit"},
		{why: "nothing fits both", offered: strict, by: "a-36", applied: "1.0.0"},
		{why: "nothing fits both any more", offered: strict, by: "b-37", applied: "1.1.0", old: "Blocked web DowngradeRefused, Update web 1.1.0>1.1.0"},
		{why: "it can't go over", offered: both, another: true, by: "a-36", applied: "1.0.0"},
		{why: "there is none yet", offered: both, new: "Install web >1.1.0, early"},
	} {
		newer := perRelease("b-37", "~1.37", "1.1.0")
		if test.another {
			newer.Spec.Addons[0].TargetNamespace = "elsewhere"
		}
		from, in := offering(entryOf(t, "web", test.offered...)), upgrading()
		if test.by != "" {
			live := madeBy(t, map[string]*v1.AddonSet{"a-36": older, "b-37": newer}[test.by], from, in, test.applied)
			intent := preparedOf(t, map[string]*v1.AddonSet{"a-36": older, "b-37": newer}[test.by], from, in, live)
			live.Name, live.Spec = in.ref.NameOf("web"), intent
			in.live[live.Name] = observationOf(live)
		}
		if test.change != nil {
			test.change(in)
		}
		sets := reading(t, older, newer)
		for name, want := range map[string]string{"a-36": test.old, "b-37": test.new} {
			made := planner{newResolver(sets[name], from), newCompetitors(sets)}.planFor(in)
			got := reported(&made)
			if made.isEarly {
				if got != "" {
					got += ", "
				}
				got += "early"
				if facts := made.factsOf(in, v1.RemovalDelete); facts.Presence != waves.Present || !facts.AtOnce {
					t.Errorf("%s: %s takes a place in its roll-out: %+v", test.why, name, facts)
				}
			}
			if got != want {
				t.Errorf("%s: %s plans %q, want %q", test.why, name, got, want)
			}
		}
	}
}

// preparedOf is the spec of an installation that a set creates in a Cluster outside of KKP.
func preparedOf(t *testing.T, of *v1.AddonSet, from *offers, in *place, live *v1.AddonInstallation) v1.AddonInstallationSpec {
	t.Helper()
	read := reading(t, of)[of.Name]
	resolved, item := newResolver(read, from), read.byName["web"]
	made := resolved.prepare(item, &choice{}, preparedKey{
		version: live.Spec.AddonRef.Version, digest: live.Spec.AddonRef.Digest, landing: resolved.landingOf(item, nil),
	}, in)
	return made.intentIn(in.ref, nil).Spec
}
