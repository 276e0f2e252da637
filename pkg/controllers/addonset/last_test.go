package addonset_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// selects makes a set select by matchLabels, in addition to the world's own label.
func selects(key, value string) func(*v1.AddonSet) {
	return func(of *v1.AddonSet) { of.Spec.ClusterSelector.MatchLabels[key] = value }
}

// waits until the removals of so many installations wait, and fails the test when Ready or the status names other
// clusters, or when an installation is removed.
func (w *world) waits(of *v1.AddonSet, count int, clusters ...string) *v1.AddonSet {
	w.t.Helper()
	found := w.says(of, v1.ReasonRemovalNeedsApproval)
	removal, said := found.Status.Removal, found.Status.Conditions[0].Message
	if removal == nil || int(removal.Count) != count || strings.Join(removal.Clusters, " ") != strings.Join(clusters, " ") {
		w.t.Errorf("status.removal is %+v, want %d in %q", removal, count, clusters)
	}
	if !strings.Contains(said, strings.Join(clusters, ", ")) || !strings.Contains(said, v1.AnnotationRemovalApproved) {
		w.t.Errorf("Ready says %q", said)
	}
	w.quiet()
	return found
}

// TestASlipInASetRemovesNothing: a small set is edited so that no cluster, or no cluster of an item, is left. The
// test fails when an installation is removed before the approval, when status and Ready don't name the clusters, when
// the set does not continue after the edit is reverted, and when an approval does not allow the removal.
func TestASlipInASetRemovesNothing(t *testing.T) {
	second := v1.AddonSetItem{
		Name: "more", AddonRef: v1.AddonReference{Name: "more"}, TargetNamespace: "more", ReconcileStrategy: v1.ReconcileContinuous,
	}
	for _, test := range []struct {
		why   string
		slip  func(*v1.AddonSet)
		count int
	}{
		{"a value of a label", selects("ring", "one"), 4},
		{"a key of a label", selects("rnig", "1"), 4},
		{"a label of the other case", selects("ring", "A"), 4},
		{"an expression", func(of *v1.AddonSet) {
			of.Spec.ClusterSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "ring", Operator: metav1.LabelSelectorOpDoesNotExist}}
		}, 4},
		{"constraints", func(of *v1.AddonSet) { of.Spec.Constraints = &v1.Constraints{K8sVersion: ">= 1.99"} }, 4},
		{"the name of an item", func(of *v1.AddonSet) { of.Spec.Addons[0].Name = "wbe" }, 2},
		{"an item that is lost", func(of *v1.AddonSet) { of.Spec.Addons = of.Spec.Addons[1:] }, 2},
		{"a selector, and nothing stays of what is removed", func(of *v1.AddonSet) {
			of.Spec.Removal = v1.RemovalOrphan
			selects("ring", "one")(of)
		}, 4},
	} {
		t.Run(test.why, func(t *testing.T) {
			w := newWorld(t, 2, 0)
			w.offers("web", "1.0.0")
			w.offers("more", "1.0.0")
			of := w.write(w.set("tools", atOnce, func(of *v1.AddonSet) { of.Spec.Addons = append(of.Spec.Addons, second) }))
			w.start()
			w.says(of, v1.ReasonComplete, current(2))
			right, was := of.Spec.DeepCopy(), w.installed("web")
			w.edit(of, test.slip)
			w.waits(of, test.count, w.names...)
			wrong := of.Spec.DeepCopy()
			w.edit(of, func(of *v1.AddonSet) { right.DeepCopyInto(&of.Spec) })
			w.says(of, v1.ReasonComplete, current(2))
			for name, one := range w.installed("web") {
				if one.UID != was[name].UID || !one.DeletionTimestamp.IsZero() {
					t.Errorf("in %s it was made again", name)
				}
			}
			w.edit(of, func(of *v1.AddonSet) { wrong.DeepCopyInto(&of.Spec) })
			of.Annotations[v1.AnnotationRemovalApproved] = w.waits(of, test.count, w.names...).Status.Removal.Word
			w.write(of)
			expect.Eventually(t, expect.Patience, func() error { return w.has(0) })
		})
	}
}

// TestASlipInTheAddonOfAnItemIsReported: the item of a running set names an add-on that no catalogue has, then one that a
// catalogue has. The test fails when the row of the cluster does not begin with the name that is probably meant, when
// it names the wrong cause, and when an installation is changed.
func TestASlipInTheAddonOfAnItemIsReported(t *testing.T) {
	w := newWorld(t, 1, 0)
	w.offers("podinfo", "1.0.0")
	w.offers("grafana", "1.0.0")
	of := w.write(w.set("tools", atOnce, func(of *v1.AddonSet) { of.Spec.Addons[0].AddonRef.Name = "podinfo" }))
	w.start()
	w.says(of, v1.ReasonComplete, current(1))
	for _, test := range []struct{ addon, reason, says string }{
		{"podinf", v1.ReasonAddonUnknown, `no catalogue has add-on "podinf": did you mean "podinfo"? Installation "web" has add-on "podinfo"`},
		{"grafana", v1.ReasonImmutableField, `addonRef.name of installation "web" can't be changed from "podinfo" to "grafana"`},
	} {
		w.edit(of, func(of *v1.AddonSet) { of.Spec.Addons[0].AddonRef.Name = v1.AddonName(test.addon) })
		expect.Object(t, w.seed, copyOf(of), func(found *v1.AddonSet) error {
			rows := found.Status.Clusters
			if len(rows) != 1 || rows[0].Reason != test.reason || !strings.HasPrefix(rows[0].Message, test.says) ||
				!strings.Contains(rows[0].Message, "give the item another name") {
				return fmt.Errorf("the rows are %+v", rows)
			}
			return nil
		})
		w.quiet()
	}
}

// TestWhatIsNoSlipNeedsNoApproval: edits and states that leave the set a cluster, or are confirmed in another way.
// The test fails when one of them waits.
func TestWhatIsNoSlipNeedsNoApproval(t *testing.T) {
	for _, test := range []struct {
		why    string
		before func(*v1.AddonSet)
		change func(w *world, of *v1.AddonSet)
		left   int
	}{
		{"all clusters, and then some", func(of *v1.AddonSet) {}, func(w *world, of *v1.AddonSet) { w.edit(of, selects("number", "2")) }, 1},
		{"other clusters than before", without("2"), func(w *world, of *v1.AddonSet) { w.edit(of, without("0", "1")) }, 1},
		{"a label of one cluster", selects("ring", "1"), func(w *world, of *v1.AddonSet) {
			w.clusters.Relabel(w.t, w.names[0], map[string]string{"ring": "2"})
		}, 2},
		{"a Cluster is deleted", func(of *v1.AddonSet) {}, func(w *world, of *v1.AddonSet) {
			for _, name := range w.names[1:] {
				expect.Delete(w.t, w.seed, &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
			}
		}, 3},
		{"what stays as if it were made by hand", func(of *v1.AddonSet) { of.Spec.Removal = v1.RemovalRelease }, func(w *world, of *v1.AddonSet) {
			w.edit(of, selects("ring", "none"))
		}, 3},
		{"a deletion that is confirmed", func(of *v1.AddonSet) {}, func(w *world, of *v1.AddonSet) {
			of.Annotations[v1.AnnotationConfirmDeletion] = of.Name
			w.write(of)
			expect.Delete(w.t, w.seed, copyOf(of))
		}, 0},
	} {
		t.Run(test.why, func(t *testing.T) {
			w := newWorld(t, 3, 0)
			w.offers("web", "1.0.0")
			of := w.write(w.set("tools", atOnce, test.before))
			w.start()
			had := int32(3)
			if len(of.Spec.ClusterSelector.MatchExpressions) > 0 {
				had = 2
			}
			w.says(of, v1.ReasonComplete, current(had))
			test.change(w, of)
			isReleased := of.Spec.Removal == v1.RemovalRelease
			expect.Eventually(t, expect.Patience, func() error {
				found := 0
				for _, one := range w.installed("web") {
					if isReleased != (one.Labels[v1.LabelSet] != "") {
						found++
					}
				}
				if found != test.left {
					return fmt.Errorf("%d have it, want %d", found, test.left)
				}
				return nil
			})
			w.steady(func() error {
				found := copyOf(of)
				if err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(found), found); client.IgnoreNotFound(err) != nil {
					return err
				}
				if found.Status.Removal != nil {
					return fmt.Errorf("it waits for %+v", found.Status.Removal)
				}
				return nil
			})
		})
	}
}

// TestTheLastClusterOfASetWaitsOnce: labels are removed from one cluster after the other. The test fails when the
// last removal begins without approval, or when an earlier one waits.
func TestTheLastClusterOfASetWaitsOnce(t *testing.T) {
	w := newWorld(t, 2, 0)
	w.offers("web", "1.0.0")
	of := w.write(w.set("tools", atOnce, selects("ring", "1")))
	w.start()
	w.says(of, v1.ReasonComplete, current(2))
	w.clusters.Relabel(t, w.names[0], map[string]string{"ring": "2"})
	expect.Eventually(t, expect.Patience, func() error { return w.has(1) })
	w.says(of, v1.ReasonComplete, current(1))
	w.clusters.Relabel(t, w.names[1], map[string]string{"ring": "2"})
	found := w.waits(of, 1, w.names[1])
	of.Annotations[v1.AnnotationRemovalApproved] = found.Status.Removal.Word
	w.write(of)
	expect.Eventually(t, expect.Patience, func() error { return w.has(0) })
	w.says(of, v1.ReasonNoClusterSelected)
}
