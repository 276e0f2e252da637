package addonset_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/test/expect"
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

// neighbour is a Cluster outside of KKP that the world's sets select.
func (w *world) neighbour(namespace, name string) target.Description {
	w.t.Helper()
	return w.beside.Make(namespace, name, func(d *target.Description) { d.Labels = map[string]string{"world": w.catalogue} })
}

// of waits for the installation of an item that a set created in a Cluster outside of KKP.
func (w *world) of(in target.Description, item string) *v1.AddonInstallation {
	w.t.Helper()
	found := &v1.AddonInstallation{}
	found.Namespace, found.Name = in.Namespace, in.Name+"."+item
	return expect.Object(w.t, w.seed, found, func(found *v1.AddonInstallation) error {
		if found.Spec.ClusterName != in.Name || found.Labels[v1.LabelManagedBy] != v1.ManagedBySets {
			return fmt.Errorf("it is not as it is made: %+v", found)
		}
		return nil
	})
}

// here are the names of all installations in a namespace.
func (w *world) here(namespace string) string {
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

// two gives a set two items. The second depends on the first, which reads values by the Cluster's name.
func two(of *v1.AddonSet) {
	log := of.Spec.Addons[0]
	log.Name, log.AddonRef = "log", v1.AddonReference{Name: "log", Version: "1.x"}
	log.DependsOn = []v1.AddonName{"web"}
	of.Spec.Addons[0].ValuesFrom = []v1.ValuesSource{{ConfigMapRef: &v1.KeyReference{Name: "values-$(cluster)"}}}
	of.Spec.Addons = append(of.Spec.Addons, log)
	of.Spec.Rollout.Groups, of.Spec.Rollout.MaxConcurrency = nil, new(intstr.FromString("100%"))
}

// TestASetIsOnEachClusterOfANamespace: a set selects two Clusters outside of KKP in one namespace, and KKP's of the
// same name elsewhere. The test fails when names are not the cluster's, when one waits for the other's, when a
// cluster is counted for another, and when a change of one cluster affects its neighbour.
func TestASetIsOnEachClusterOfANamespace(t *testing.T) {
	w := newWorld(t, 1, 0)
	team := w.team()
	w.offers("web", "1.0.0")
	w.offers("log", "1.0.0")
	one, other := w.neighbour(team, w.names[0]), w.neighbour(team, "stage.eu")
	w.useKey()
	w.start()
	of := w.write(w.set("tools", two))
	w.open(of, 1)
	for _, in := range []target.Description{one, other} {
		web, log := w.of(in, "web"), w.of(in, "log")
		if needs := log.Spec.DependsOn; len(needs) != 1 || string(needs[0]) != in.Name+".web" {
			t.Errorf("%s depends on %v", log.Name, needs)
		}
		if from := web.Spec.ValuesFrom; len(from) != 1 || from[0].ConfigMapRef.Name != "values-"+in.Name {
			t.Errorf("%s has values from %+v", web.Name, from)
		}
	}
	found := w.says(of, v1.ReasonComplete, func(c v1.ClusterCounts) bool { return c.Selected == 3 })
	if w.installed("web")[w.names[0]] == nil || len(found.Status.Clusters) != 0 {
		t.Errorf("KKP's has no web, or there is trouble: %+v", found.Status.Clusters)
	}
	before := w.of(other, "log")

	one.Labels = nil
	w.beside.Put(one)
	want := other.Name + ".log " + other.Name + ".web"
	expect.Eventually(t, expect.Patience, func() error {
		if got := w.here(team); got != want {
			return fmt.Errorf("there are %s, want %s", got, want)
		}
		return nil
	})
	w.says(of, v1.ReasonComplete, func(c v1.ClusterCounts) bool { return c.Selected == 2 })
	w.beside.Remove(one)
	w.quiet()
	if after := w.of(other, "log"); after.ResourceVersion != before.ResourceVersion && after.Generation != before.Generation {
		t.Error("the neighbour's was written")
	}
}

// TestWhatIsPendingNamesItemsInAllClusters fails when a paused set reports a change once per cluster, by the names of
// installations, and when clusters of one name are reported as one.
func TestWhatIsPendingNamesItemsInAllClusters(t *testing.T) {
	w := newWorld(t, 1, 0)
	team := w.team()
	w.offers("web", "1.0.0")
	one, other := w.neighbour(team, w.names[0]), w.neighbour(team, "stage.eu")
	w.useKey()
	w.start()
	of := w.write(w.set("tools", atOnce))
	w.open(of, 1)
	w.of(one, "web")
	w.of(other, "web")
	w.says(of, v1.ReasonComplete)
	of.Spec.Paused, of.Spec.Addons[0].Name = true, "site"
	w.write(of)
	w.says(of, v1.ReasonPaused)
	expect.Object(t, w.seed, copyOf(of), func(found *v1.AddonSet) error {
		var reported []string
		for _, one := range found.Status.Pending {
			reported = append(reported, fmt.Sprintf("%s %s %d", one.Change, one.Item, one.Clusters))
		}
		slices.Sort(reported)
		if got := strings.Join(reported, ","); got != "Blocked site 3,Remove web 3" {
			return fmt.Errorf("pending is %s", got)
		}
		return nil
	})
}

// TestANeighboursInstallationsAreNoneOfASets: in one of two Clusters a user has installed the add-on already, and an
// installation of that Cluster has the name that the set uses in a third. The test fails when the first Cluster's
// installation blocks the second Cluster, and when an installation of another cluster is written.
func TestANeighboursInstallationsAreNoneOfASets(t *testing.T) {
	w := newWorld(t, 0, 0)
	team := w.team()
	w.offers("web", "1.0.0")
	first, second, third := w.neighbour(team, "prod-1"), w.neighbour(team, "prod-2"), w.neighbour(team, "prod-3")
	for name, of := range map[string]target.Description{"mine": first, "prod-3.web": first} {
		users := &v1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name}}
		users.Spec.ClusterName, users.Spec.AddonRef.Name, users.Spec.TargetNamespace = of.Name, "web", "web"
		expect.Create(t, w.seed, users)
	}
	w.useKey()
	w.start()
	of := w.write(w.set("tools", atOnce))
	w.open(of, 1)
	w.of(second, "web")
	found := w.says(of, v1.ReasonComplete, func(c v1.ClusterCounts) bool { return c.Blocked == 2 })
	var reported []string
	for _, one := range found.Status.Clusters {
		reported = append(reported, one.Name+" "+one.Reason)
	}
	slices.Sort(reported)
	if want := fmt.Sprintf("%s/%s NameTaken,%s/%s NameTaken", team, first.Name, team, third.Name); strings.Join(reported, ",") != want {
		t.Errorf("it tells of %v, want %s", reported, want)
	}
	if got, want := w.here(team), "mine prod-2.web prod-3.web"; got != want {
		t.Errorf("there are %s, want %s", got, want)
	}
}

// TestTheAddonOfAnItemIsNotChangedInPlace fails when an item that names another add-on is written to its
// installation, whose add-on can't change.
func TestTheAddonOfAnItemIsNotChangedInPlace(t *testing.T) {
	w := newWorld(t, 1, 0)
	w.offers("web", "1.0.0")
	w.offers("log", "1.0.0")
	w.useKey()
	w.start()
	of := w.write(w.set("tools", atOnce))
	w.open(of, 1)
	w.says(of, v1.ReasonComplete, current(1))
	of.Spec.Addons[0].AddonRef.Name = "log"
	w.write(of)
	w.open(of, 1)
	found := w.says(of, v1.ReasonBlocked, func(c v1.ClusterCounts) bool { return c.Blocked == 1 })
	if len(found.Status.Clusters) != 1 || found.Status.Clusters[0].Reason != v1.ReasonImmutableField {
		t.Errorf("it tells of %+v", found.Status.Clusters)
	}
	if one := w.installed("web")[w.names[0]]; one == nil || one.Spec.AddonRef.Name != "web" {
		t.Errorf("the installation is %+v", one)
	}
}
