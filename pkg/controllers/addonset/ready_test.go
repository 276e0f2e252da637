package addonset_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/standins"
)

// saysSo waits until a copy has that reason for Ready, and a message that begins so.
func (w *world) saysSo(of *v1.AddonSet, reason string, words ...string) {
	w.t.Helper()
	expect.HasCondition(w.t, w.seed, copyOf(of), expect.Is(v1.ConditionReady, readyBy(reason), reason, words...))
}

// patch a Cluster.
func (w *world) patch(name, merge string) {
	w.t.Helper()
	of := &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	expect.Merge(w.t, w.seed, of, []byte(merge))
}

// TestReadyOfASetTellsWhatItDoes turns red when a set that installs nothing is complete: its selector matches nothing, or all is blocked; when
// one of a seed without Clusters is not; and when the first Cluster that comes, or the last that goes, changes nothing.
func TestReadyOfASetTellsWhatItDoes(t *testing.T) {
	w := newWorld(t, 2, 0)
	w.offers("web", "1.0.0")
	w.useKey()
	w.start()
	typo := w.write(w.set("typo", atOnce, func(of *v1.AddonSet) { of.Spec.ClusterSelector.MatchLabels["world"] = "none" }))
	slip := w.write(w.set("slip", atOnce, func(of *v1.AddonSet) { of.Spec.Addons[0].AddonRef.Name = "weeb" }))
	w.saysSo(typo, v1.ReasonNoClusterSelected, "no cluster is selected")
	w.saysSo(slip, v1.ReasonBlocked, "0 of 2 clusters", "2 are blocked")

	w.patch(w.names[0], `{"spec":{"pause":true}}`)
	w.saysSo(slip, v1.ReasonBlocked, "0 of 2 clusters")
	w.patch(w.names[1], `{"spec":{"pause":true}}`)
	w.saysSo(slip, v1.ReasonComplete, "0 of 2 clusters", "2 are unreachable or paused")

	for _, name := range w.names {
		w.patch(name, `{"metadata":{"finalizers":null}}`)
		expect.Delete(t, w.seed, &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	w.saysSo(slip, v1.ReasonComplete, "there is no cluster yet")
	w.saysSo(typo, v1.ReasonComplete, "there is no cluster yet")
	w.names = append(w.names, w.clusters.Make(t, standins.Shape{First: worlds*1000 + 10, Count: 1})...)
	w.saysSo(typo, v1.ReasonNoClusterSelected, "no cluster is selected")
	w.saysSo(slip, v1.ReasonNoClusterSelected, "no cluster is selected")
}

// TestAPausedSetTellsOfNoRollout turns red when events say that a paused set begins to roll, or opens a group, when they don't once it goes
// on, and when what is blocked counts as pending.
func TestAPausedSetTellsOfNoRollout(t *testing.T) {
	w := newWorld(t, 2, 1)
	w.offers("web", "1.0.0")
	w.useKey()
	w.start()
	of := w.write(w.set("tools", func(of *v1.AddonSet) {
		of.Spec.Paused = true
		of.Spec.Addons = append(of.Spec.Addons, of.Spec.Addons[0])
		of.Spec.Addons[1].Name, of.Spec.Addons[1].AddonRef.Name = "slip", "weeb"
	}))
	w.open(of, 2)
	found := w.says(of, v1.ReasonPaused, func(c v1.ClusterCounts) bool { return c.Behind == 2 })
	if found.Status.PendingCount != 2 || len(found.Status.Pending) != 2 {
		t.Errorf("%d changes are pending of %+v", found.Status.PendingCount, found.Status.Pending)
	}
	w.told("")
	of.Spec.Paused = false
	w.write(of)
	w.saysSo(of, v1.ReasonBlocked, "0 of 2 clusters", "2 are blocked")
	w.told("GroupOpened,GroupOpened,Completed")
}

// TestAnItemIsInstalledWhereTheCatalogueSays turns red when an item that names no namespace is refused, gets another one than the catalogue's, is
// written again and again, or is taken to another namespace once the catalogue names that; and when it is made without any.
func TestAnItemIsInstalledWhereTheCatalogueSays(t *testing.T) {
	w := newWorld(t, 2, 0)
	w.landing = "net"
	w.offers("web", "1.0.0")
	w.useKey()
	w.start()
	spaceless := func(of *v1.AddonSet) { of.Spec.Addons[0].TargetNamespace = "" }
	of := w.write(w.set("tools", atOnce, spaceless))
	w.open(of, 1)
	w.says(of, v1.ReasonComplete, current(2))
	w.landing = "other"
	w.offers("web", "1.0.0", "1.1.0")
	w.open(of, 1)
	w.says(of, v1.ReasonComplete, current(2), func(v1.ClusterCounts) bool { return len(w.at("1.1.0")) == 2 })
	for name, one := range w.installed("web") {
		if one.Spec.TargetNamespace != "net" || !one.Spec.CreateNamespace {
			t.Errorf("%s: it is %+v", name, one.Spec)
		}
	}
	w.quiet()
	w.landing = ""
	w.offers("log", "1.0.0")
	other := w.write(w.set("nowhere", atOnce, spaceless, func(of *v1.AddonSet) {
		of.Spec.Addons[0].Name, of.Spec.Addons[0].AddonRef.Name = "log", "log"
	}))
	w.saysSo(other, v1.ReasonBlocked, "0 of 2 clusters", "2 are blocked")
	w.troubles(other, w.names[0], "log", v1.ReasonNamespaceUnset)
}
