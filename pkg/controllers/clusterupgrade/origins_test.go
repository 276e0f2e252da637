package clusterupgrade

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/upgrade"
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

// Who keeps a gate is named where a version is what it lacks. Red where a set is blamed for a gate that is where it is to be, in a cluster
// that does not answer, or for one that it leaves alone, and where it is not named although it is to move the gate.
func TestOnlyAGateThatLacksAVersionBlamesASet(t *testing.T) {
	tag, branch := &v1.GitRef{Tag: "v1"}, &v1.GitRef{Branch: "main"}
	paused := &v1.AddonSet{ObjectMeta: metav1.ObjectMeta{Name: "core"}, Spec: v1.AddonSetSpec{Paused: true, Rollout: &v1.Rollout{}}}
	unreachable := metav1.Condition{Type: v1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1.ReasonClusterUnreachable}
	ready := metav1.Condition{Type: v1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1.ReasonReady}
	blame := `; AddonSet "core" is paused: set its spec.paused to false`
	for _, test := range []struct {
		why, kubernetes, next, installed string
		ready                            metav1.Condition
		ref                              *v1.GitRef
		want                             string
	}{
		{"it is where it is to be, in a dead cluster", "1.36.3", "", "1.1.0", unreachable, tag, v1.ReasonClusterUnreachable},
		{"so it is before an upgrade", "1.36.3", "1.37.1", "1.1.0", unreachable, tag, v1.ReasonClusterUnreachable},
		{"it is behind in a dead cluster", "1.37.1", "", "1.0.0", unreachable, tag, v1.ReasonClusterUnreachable + blame},
		{"its version does not fit", "1.37.1", "", "1.0.0", ready, tag, "version 1.0.0 does not fit" + blame},
		{"it is to move before an upgrade", "1.36.3", "1.37.1", "1.0.0", ready, tag, "moves to 1.1.0" + blame},
		{"the set leaves it alone", "1.37.1", "", "1.0.0", ready, branch, "version 1.0.0 does not fit"},
		{"it is right", "1.36.3", "", "1.1.0", ready, tag, ""},
	} {
		live := &v1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Name: "elm.cni"}}
		live.Spec.AddonRef.Name = "cni"
		live.Status.Version, live.Status.LastApplied = test.installed, &v1.AppliedState{Addon: "cni", Version: test.installed}
		live.Status.Conditions = []metav1.Condition{test.ready}
		of := target.Description{KubernetesVersion: test.kubernetes, Upgrade: &target.Upgrade{
			Wanted: test.kubernetes, Versions: []string{test.kubernetes}, Asked: test.kubernetes, Hook: true,
		}}
		if test.next != "" {
			of.Upgrade.Wanted, of.Upgrade.Plan = test.next, []string{test.next}
		}
		if gate := (origins{of: of, core: paused}).gate(live, offered(t, test.ref)); gate.Problem != test.want {
			t.Errorf("%s: %q", test.why, gate.Problem)
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

// offered is an add-on whose versions come from a Git source: 1.0.0 fits below Kubernetes 1.37, 1.1.0 also to it.
func offered(t *testing.T, ref *v1.GitRef) *catalogue.Entry {
	t.Helper()
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

// An installation of 1.0.0 in a cluster that waits to go to 1.37.1. Red where a set is waited for that leaves alone what may change by
// itself, where a later step of the plan is not looked at, and where one that is there counts before it is Ready.
func TestAGateIsEvaluatedByWhatMovesIt(t *testing.T) {
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
		after := slices.Repeat([]origin{{ref: live.Spec.AddonRef, by: test.by}}, len(test.plan))
		gate := origins{of: of}.evaluate(upgrade.Gate{Bridges: true}, live, after, offered(t, test.ref))
		if gate.Bridges != test.bridges || gate.Breaks != test.breaks {
			t.Errorf("%s: %+v", test.why, gate)
		}
	}
}
