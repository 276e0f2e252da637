package coreaddon_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
	kit "github.com/trellis-addons/trellis/test/world"
)

// team creates a namespace for Clusters outside of KKP.
func (w *world) team() string {
	w.t.Helper()
	w.beside = &kit.Beside{}
	name := fmt.Sprintf("team-%d", worlds)
	expect.Create(w.t, w.seed, kit.Namespace(name))
	return name
}

// neighbour is a Cluster outside of KKP, with its available catalogue.
func (w *world) neighbour(namespace, name string, labels map[string]string) target.Description {
	w.t.Helper()
	made := w.beside.Make(namespace, name, func(d *target.Description) { d.Labels = labels })
	expect.Create(w.t, w.seed, given.Available(cluster.AvailableOf(made.Ref), made.Owner))
	return made
}

// coreOf waits for a core installation in a Cluster outside of KKP.
func (w *world) coreOf(of target.Description, item string) *v1.AddonInstallation {
	w.t.Helper()
	found := &v1.AddonInstallation{}
	found.Namespace, found.Name = of.Namespace, of.Name+"."+item
	return expect.Object(w.t, w.seed, found, func(found *v1.AddonInstallation) error {
		if !found.Spec.CoreAddon || !hasProtection(found) || found.Spec.ClusterName != of.Name || !found.DeletionTimestamp.IsZero() {
			return fmt.Errorf("it is not as it is made: %+v", found)
		}
		return nil
	})
}

// ready waits for AddonsReady on the available catalogue of a Cluster outside of KKP.
func (w *world) ready(of target.Description, total int32, state, reason string) {
	w.t.Helper()
	key := cluster.AvailableOf(of.Ref)
	found := &v1.AddonCatalogue{}
	found.Namespace, found.Name = key.Namespace, key.Name
	expect.Object(w.t, w.seed, found, func(found *v1.AddonCatalogue) error {
		if found.Status.Core == nil || found.Status.Core.Total != total {
			return fmt.Errorf("status.core is %+v, want %d in total", found.Status.Core, total)
		}
		return expect.Condition(found, v1.ConditionAddonsReady, state, reason)
	})
}

// names are the names of all installations in a namespace.
func (w *world) names(namespace string) string {
	w.t.Helper()
	var all v1.AddonInstallationList
	expect.List(w.t, w.seed, &all, client.InNamespace(namespace))
	var names []string
	for i := range all.Items {
		names = append(names, all.Items[i].Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

const besideList = `
- {name: monitoring, addonRef: {name: prometheus}, targetNamespace: monitoring}
- {name: logs, addonRef: {name: loki}, targetNamespace: logs, clusterSelector: {matchLabels: {logs: wanted}}}
`

// TestClustersOfANamespaceHaveEachTheirCoreAddons: two Clusters outside of KKP share a namespace, and KKP has one of
// the same name elsewhere. The test fails when they have KKP's rules, when a release has the cluster in its name,
// when a reconciliation of one removes, protects, counts or reports the other's installations, and when a change of
// one affects the other.
func TestClustersOfANamespaceHaveEachTheirCoreAddons(t *testing.T) {
	w := newWorld(t)
	team := w.team()
	w.merged(v1.CatalogueCore, "rbac")
	for _, addon := range []string{"prometheus", "loki"} {
		merged := w.merged(v1.CatalogueCustom, addon)
		merged.Spec.Addons[0].Versions[0].Template = &v1.Template{Method: v1.MethodHelm}
		merged.Spec.Addons[0].Versions[0].Source = &v1.Source{Docker: &v1.ImageSource{Image: "registry.example/chart:1"}}
		expect.Update(t, w.seed, merged)
	}
	w.listed(besideList)
	kkp := w.cluster("prod")
	one := w.neighbour(team, kkp.Name, map[string]string{"logs": "wanted"})
	other := w.neighbour(team, "stage.eu", map[string]string{"logs": "wanted"})
	w.start()
	w.exists(kkp, "rbac")
	w.exists(kkp, "monitoring")
	for _, of := range []target.Description{one, other} {
		for _, item := range []string{"monitoring", "logs"} {
			if found := w.coreOf(of, item); found.Spec.ReleaseName != item {
				t.Errorf("%s is release %q", found.Name, found.Spec.ReleaseName)
			}
		}
		w.ready(of, 2, "False", v1.ReasonCoreAddonsNotReady)
	}
	w.reports(kkp, "5 total, 0 ready, 0 failing, 3 missing", "False "+v1.ReasonCoreAddonsNotReady)
	want := fmt.Sprintf("%[1]s.logs %[1]s.monitoring stage.eu.logs stage.eu.monitoring", one.Name)
	if got := w.names(team); got != want {
		t.Fatalf("there are %s, want %s", got, want)
	}
	before := w.coreOf(other, "logs")

	one.Labels = nil
	w.beside.Put(one) // removes one of them from the set
	expect.Eventually(t, expect.Patience, func() error {
		if got, want := w.names(team), one.Name+".monitoring stage.eu.logs stage.eu.monitoring"; got != want {
			return fmt.Errorf("there are %s, want %s", got, want)
		}
		return nil
	})
	w.ready(one, 1, "False", v1.ReasonCoreAddonsNotReady)

	gone := w.coreOf(one, "monitoring")
	gone.Status.Cluster = new(one.Identity())
	expect.UpdateStatus(t, w.seed, gone)
	expect.Delete(t, w.seed, gone) // as the deletion of its owner does
	w.event(v1.EventDeletionBlocked)
	w.beside.Remove(one)
	expect.Gone(t, w.seed, gone)
	if after := w.coreOf(other, "logs"); after.ResourceVersion != before.ResourceVersion {
		t.Error("the neighbour's was written")
	}
	w.ready(other, 2, "False", v1.ReasonCoreAddonsNotReady)
}

// TestADeletedClusterLetsItsOwnCoreAddonsGo fails when a neighbour in its namespace loses its protection with it.
func TestADeletedClusterLetsItsOwnCoreAddonsGo(t *testing.T) {
	w := newWorld(t)
	team := w.team()
	w.merged(v1.CatalogueCustom, "prometheus")
	w.listed(monitoringItem)
	one, other := w.neighbour(team, "prod-1", nil), w.neighbour(team, "prod-10", nil)
	w.start()
	mine, theirs := w.coreOf(one, "monitoring"), w.coreOf(other, "monitoring")
	one.Deleted = true
	w.beside.Put(one)
	expect.Object(t, w.seed, mine, func(found *v1.AddonInstallation) error {
		if hasProtection(found) {
			return fmt.Errorf("it is protected still")
		}
		return nil
	})
	w.stays(theirs)
}

// stays checks that an installation is not written for a while.
func (w *world) stays(one *v1.AddonInstallation) {
	w.t.Helper()
	w.steady(func() error {
		found := &v1.AddonInstallation{}
		if err := w.seed.Get(w.t.Context(), client.ObjectKeyFromObject(one), found); err != nil {
			return err
		}
		if found.ResourceVersion != one.ResourceVersion {
			return fmt.Errorf("%s was written", one.Name)
		}
		return nil
	})
}

// TestANameThatANeighbourHasIsTaken: an installation of one Cluster has the name of a core add-on of another. The
// test fails when it is written, and when the cluster does not report it.
func TestANameThatANeighbourHasIsTaken(t *testing.T) {
	w := newWorld(t)
	team := w.team()
	w.merged(v1.CatalogueCustom, "prometheus")
	w.listed(monitoringItem)
	one, other := w.neighbour(team, "prod-1", nil), w.neighbour(team, "prod-2", nil)
	users := &v1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "prod-1.monitoring"}}
	users.Spec.ClusterName, users.Spec.AddonRef.Name, users.Spec.TargetNamespace = other.Name, "prometheus", "mine"
	expect.Create(w.t, w.seed, users)
	w.start()
	w.coreOf(other, "monitoring")
	w.ready(one, 1, "False", v1.ReasonNameTaken)
	w.stays(users)
}

// TestACoreSetCountsClustersOfANamespaceApart: a Core set is for two Clusters of a namespace and KKP's of the name.
// The test fails when one is counted for the other, when their pins are mixed, and when pending changes name
// installations instead of items.
func TestACoreSetCountsClustersOfANamespaceApart(t *testing.T) {
	w := newWorld(t)
	team := w.team()
	w.listed(monitored)
	player := &played{w: w, entry: w.offered("net", [3]string{"1.0.0", "a", ""}), newest: "1.0.0"}
	kkp := w.cluster("prod")
	one, other := w.neighbour(team, kkp.Name, nil), w.neighbour(team, "stage.eu", nil)
	w.start()
	w.exists(kkp, "monitoring")
	w.coreOf(one, "monitoring")
	w.coreOf(other, "monitoring")
	player.play()
	of := w.coreSet(ungrouped)
	player.until(func() error { return w.setSays(of, v1.ReasonComplete) })
	if counts := of.Status.Counts; counts == nil || counts.Selected != 3 || counts.Current != 3 {
		t.Fatalf("it counts %+v", counts)
	}
	for _, found := range []*v1.AddonInstallation{w.exists(kkp, "monitoring"), w.coreOf(one, "monitoring"), w.coreOf(other, "monitoring")} {
		if found.Spec.AddonRef.Digest == "" {
			t.Errorf("%s/%s is not pinned", found.Namespace, found.Name)
		}
	}

	w.change(of, func(of *v1.AddonSet) { of.Spec.Paused = true })
	player.entry = w.offered("net", [3]string{"1.0.0", "b", ""})
	player.until(func() error {
		if err := w.setSays(of, v1.ReasonPaused); err != nil {
			return err
		}
		if pending := of.Status.Pending; len(pending) != 1 || pending[0].Item != "monitoring" || pending[0].Clusters != 3 {
			return fmt.Errorf("pending is %+v", pending)
		}
		return nil
	})
	before := w.coreOf(other, "monitoring")
	w.beside.Remove(one)
	player.until(func() error {
		if err := w.setSays(of, v1.ReasonPaused); err != nil || of.Status.Counts.Selected != 2 {
			return fmt.Errorf("it counts %+v (%w)", of.Status.Counts, err)
		}
		return nil
	})
	w.stays(before)
	w.change(of, func(of *v1.AddonSet) { of.Spec.Paused = false })
	player.until(func() error { return w.setSays(of, v1.ReasonComplete) })
	if after := w.coreOf(other, "monitoring"); after.Spec.AddonRef.Digest == before.Spec.AddonRef.Digest {
		t.Error("it did not move")
	}
}

// TestTheAddonOfAnItemCantBeChanged: the list gives an item another add-on, to which its installation can't change.
// The test fails when that is written, or is not in the cluster's condition.
func TestTheAddonOfAnItemCantBeChanged(t *testing.T) {
	w := newWorld(t)
	w.merged(v1.CatalogueCustom, "prometheus")
	w.merged(v1.CatalogueCustom, "grafana")
	w.listed(monitoringItem)
	of := w.cluster("birch")
	w.start()
	before := w.exists(of, "monitoring")
	for addon, says := range map[string]string{
		"grafana": `addonRef.name of installation "monitoring" can't be changed`, "promethus": `did you mean "prometheus"? Installation "monitoring" has`,
	} {
		w.listed("[{name: monitoring, addonRef: {name: " + addon + "}, targetNamespace: monitoring}]")
		w.reports(of, "5 total, 0 ready, 0 failing, 4 missing", "False "+v1.ReasonFailed)
		expect.Object(t, w.seed, availableOf(of), func(found *v1.AddonCatalogue) error {
			return expect.Condition(found, v1.ConditionAddonsReady, "False", v1.ReasonFailed, says)
		})
		w.stays(before)
	}
}

// TestACoreAddonGoesWithAPreviousClusterOfTheName: garbage collection deletes the installations of a Cluster outside of
// KKP, and another Cluster gets its name before they are gone. The test fails when a deleted installation keeps its
// protection, so that it would stay forever; and when a user's deletion removes the protection while the Cluster is
// the same.
func TestACoreAddonGoesWithAPreviousClusterOfTheName(t *testing.T) {
	w := newWorld(t)
	team := w.team()
	w.merged(v1.CatalogueCustom, "prometheus")
	w.listed(monitoringItem)
	one := w.neighbour(team, "prod-1", nil)
	w.start()
	previous := w.coreOf(one, "monitoring")
	previous.Status.Cluster = new(one.Identity())
	expect.UpdateStatus(t, w.seed, previous)
	expect.Delete(t, w.seed, previous)
	expect.Read(t, w.seed, previous)
	w.stays(previous)
	one.UID, one.Owner.UID = "another", "another"
	w.beside.Put(one)
	expect.Eventually(t, expect.Patience, func() error {
		found := &v1.AddonInstallation{}
		if err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(previous), found); err != nil {
			return err
		}
		if found.UID == previous.UID || !hasProtection(found) {
			return fmt.Errorf("it is %+v", found.ObjectMeta)
		}
		return nil
	})
}
