package addonset_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/standins"
)

// saysSo waits until a copy has that reason for Ready, and a message that begins with these words.
func (w *world) saysSo(of *v1.AddonSet, reason string, words ...string) {
	w.t.Helper()
	expect.HasCondition(w.t, w.seed, copyOf(of), expect.Is(v1.ConditionReady, readyBy(reason), reason, words...))
}

// patch patches a Cluster.
func (w *world) patch(name, merge string) {
	w.t.Helper()
	of := &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	expect.Merge(w.t, w.seed, of, []byte(merge))
}

// TestReadyOfASetReportsWhatItDoes fails when a set that installs nothing is complete: its selector matches nothing, or
// all is blocked; when one of a seed without Clusters is not; when the first Cluster that is created, or the deletion
// of the last, changes nothing; and when the clusters, the item, the reason or the probable add-on are not named.
func TestReadyOfASetReportsWhatItDoes(t *testing.T) {
	w := newWorld(t, 2, 0)
	w.offers("web", "1.0.0")
	w.useKey()
	w.start()
	typo := w.write(w.set("typo", atOnce, func(of *v1.AddonSet) { of.Spec.ClusterSelector.MatchLabels["world"] = "none" }))
	slip := w.write(w.set("slip", atOnce, func(of *v1.AddonSet) { of.Spec.Addons[0].AddonRef.Name = "weeb" }))
	w.saysSo(typo, v1.ReasonNoClusterSelected, "no cluster is selected")
	const unknown = `: AddonUnknown of item "web": no catalogue has add-on "weeb": did you mean "web"?`
	w.saysSo(slip, v1.ReasonBlocked, "0 of 2 clusters", "2 are blocked ("+w.names[0]+unknown, "; "+w.names[1]+": AddonUnknown of item")

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

// TestAPausedSetReportsNoRollout fails when events report that a paused set begins to roll, or opens a group, when
// they don't once it continues, and when a blocked change counts as pending.
func TestAPausedSetReportsNoRollout(t *testing.T) {
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
	w.reported("")
	of.Spec.Paused = false
	w.write(of)
	w.saysSo(of, v1.ReasonBlocked, "0 of 2 clusters", "2 are blocked")
	w.reported("GroupOpened,GroupOpened,Completed")
}

// TestAnItemIsInstalledWhereTheCatalogueSays fails when an item that names no namespace is refused, gets another one
// than the catalogue's, is written repeatedly, or moves to another namespace once the catalogue names one; and when
// it is created without any.
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

// TestAnUnknownAddonIsComparedWithLaterOnes fails when a set does not notice a later catalogue with a similar name,
// or its deletion.
func TestAnUnknownAddonIsComparedWithLaterOnes(t *testing.T) {
	w := newWorld(t, 1, 0)
	w.offers("log", "1.0.0")
	w.useKey()
	w.start()
	slip := w.write(w.set("slip", atOnce, func(of *v1.AddonSet) { of.Spec.Addons[0].AddonRef.Name = "weeb" }))
	row := func(message string) {
		t.Helper()
		expect.Object(t, w.seed, copyOf(slip), func(found *v1.AddonSet) error {
			if rows := found.Status.Clusters; len(rows) != 1 || rows[0].Reason != v1.ReasonAddonUnknown || rows[0].Message != message {
				return fmt.Errorf("the rows are %+v", rows)
			}
			return nil
		})
	}
	row(`no catalogue has add-on "weeb"`)
	w.offers("web", "1.0.0")
	row(`no catalogue has add-on "weeb": did you mean "web"?`)
	expect.Delete(t, w.seed, &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: w.catalogue, Name: "web"}})
	row(`no catalogue has add-on "weeb"`)
}
