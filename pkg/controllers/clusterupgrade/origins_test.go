package clusterupgrade

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/target"
	"github.com/trellis-addons/trellis/pkg/upgrade"
)

// What keeps a set from moving a gate is named, with what ends it; what concerns another cluster or item is not. Red where one of these is
// told of a gate that it does not keep, or is not told.
func TestWhoKeepsAGateIsNamed(t *testing.T) {
	in := target.Ref{Kind: target.KindClusterAPI, Namespace: "team", Name: "elm"}
	live := &v1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Name: "elm.cni"}}
	row := func(cluster, item string, state v1.ClusterState) *v1.AddonSet {
		return &v1.AddonSet{ObjectMeta: metav1.ObjectMeta{Name: "next"}, Status: v1.AddonSetStatus{Clusters: []v1.SetClusterStatus{{
			Name: cluster, State: state, Item: item, Message: "no Secret",
		}}}}
	}
	paused := row("", "", "")
	paused.Spec.Paused = true
	for _, test := range []struct {
		why  string
		by   *v1.AddonSet
		want string
	}{
		{"no set has it", nil, ""},
		{"nothing keeps it", row("team/fir", "cni", v1.ClusterBlocked), ""},
		{"another item is blocked", row(in.LongName(), "csi", v1.ClusterBlocked), ""},
		{"it failed, which the gate tells", row(in.LongName(), "cni", v1.ClusterFailed), ""},
		{"it is blocked", row(in.LongName(), "cni", v1.ClusterBlocked), `blocked in AddonSet "next": no Secret`},
		{"it is paused", paused, `AddonSet "next" is paused: set its spec.paused to false`},
	} {
		if got := stall(test.by, live, in); got != test.want {
			t.Errorf("%s: %q", test.why, got)
		}
	}
}

// Red where an upgrade over several minors counts as planned before Cluster API says its steps, or one over a single minor, of a Cluster API
// that says none, never does.
func TestAnUpgradeIsPlannedOnceItsStepsAreKnown(t *testing.T) {
	for _, test := range []struct {
		why  string
		of   target.Upgrade
		want bool
	}{
		{"none is pending", target.Upgrade{Wanted: "1.36.3", Versions: []string{"1.36.3"}, Plan: []string{"1.36.3"}}, true},
		{"no version is known", target.Upgrade{Wanted: "1.37.1", Plan: []string{"1.37.1"}}, true},
		{"over one minor", target.Upgrade{Wanted: "1.37.1", Versions: []string{"1.36.3"}, Plan: []string{"1.37.1"}}, true},
		{"over two", target.Upgrade{Wanted: "1.37.1", Versions: []string{"1.35.4"}, Plan: []string{"1.37.1"}}, false},
		{"over two, planned", target.Upgrade{Wanted: "1.37.1", Versions: []string{"1.35.4"}, Plan: []string{"1.36.3", "1.37.1"}}, true},
		{"nobody knows the version", target.Upgrade{Wanted: "new", Versions: []string{"1.35.4"}, Plan: []string{"new"}}, true},
	} {
		if got := isPlanned(&test.of); got != test.want {
			t.Errorf("%s: %t", test.why, got)
		}
	}
}

// An installation of 1.0.0 in a cluster that waits to go to 1.37.1. Red where a set is waited for that leaves alone what may change by
// itself, where a later step of the plan is not looked at, and where one that is there counts before it is Ready.
func TestAGateIsJudgedByWhatMovesIt(t *testing.T) {
	offering := func(ref *v1.GitRef) *catalogue.Entry {
		version := func(name, fits string) v1.AddonVersion {
			return v1.AddonVersion{
				Version: name, Constraints: &v1.Constraints{K8sVersion: v1.VersionRange(fits)}, Template: &v1.Template{Method: v1.MethodGoTemplate},
				Source: &v1.Source{Git: &v1.GitSource{Remote: "https://git.example.com/cni", Ref: ref}},
			}
		}
		entry, err := catalogue.NewEntry(&v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Name: "cni"}, Spec: v1.AddonCatalogueSpec{
			Type: v1.CatalogueCustom, Addons: []v1.Addon{{Name: "cni", Slot: v1.SlotCNI, Versions: []v1.AddonVersion{
				version("1.0.0", "< 1.37"), version("1.1.0", ">= 1.36, < 1.38"),
			}}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		return entry
	}
	staged := &v1.AddonSet{Spec: v1.AddonSetSpec{Rollout: &v1.Rollout{}}}
	tag, branch := &v1.GitRef{Tag: "v1"}, &v1.GitRef{Branch: "main"}
	for _, test := range []struct {
		why, installed  string
		ref             *v1.GitRef
		by              *v1.AddonSet
		plan            []string
		bridges, breaks bool
	}{
		{"it moves first", "1.0.0", tag, nil, []string{"1.37.1"}, false, false},
		{"a set moves it", "1.0.0", tag, staged, []string{"1.37.1"}, false, false},
		{"a set leaves it alone", "1.0.0", branch, staged, []string{"1.37.1"}, true, false},
		{"without a rollout it is moved", "1.0.0", branch, &v1.AddonSet{}, []string{"1.37.1"}, false, false},
		{"it breaks on the second step", "1.1.0", tag, nil, []string{"1.37.1", "1.38.0"}, true, true},
		{"it is there, and not Ready", "1.1.0", tag, nil, []string{"1.37.1"}, false, false},
	} {
		live := &v1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Name: "elm.cni"}}
		live.Spec.AddonRef.Name = "cni"
		live.Status.Version, live.Status.LastApplied = test.installed, &v1.AppliedState{Addon: "cni", Version: test.installed}
		of := target.Description{KubernetesVersion: "1.36.3", Upgrade: &target.Upgrade{
			Wanted: test.plan[len(test.plan)-1], Versions: []string{"1.36.3"}, Asked: "1.36.3", Plan: test.plan, Hook: true,
		}}
		gate := upgrade.Gate{Bridges: true}
		after := slices.Repeat([]origin{{ref: live.Spec.AddonRef, by: test.by}}, len(test.plan))
		if (&Reconciler{}).judge(&gate, of, live, after, offering(test.ref)); gate.Bridges != test.bridges || gate.Breaks != test.breaks {
			t.Errorf("%s: %+v", test.why, gate)
		}
	}
}
