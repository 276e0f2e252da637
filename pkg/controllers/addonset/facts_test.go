package addonset_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/standins"
)

// TestFactsOfAClusterSelectIt: a set uses facts of Clusters in addition to their labels: to select clusters, for the
// group of each, and for overrides; and each cluster has its own name in the sources of values. The test fails when
// one of the three does not see facts, when the name of the seed differs from the copy's, and when two clusters get
// the name of one.
func TestFactsOfAClusterSelectIt(t *testing.T) {
	w := newWorld(t, 4, 0)
	w.offers("web", "1.0.0")
	w.offers("more", "1.0.0")
	facts := func(seed string) *metav1.LabelSelector {
		return &metav1.LabelSelector{
			MatchLabels: map[string]string{
				"world": w.catalogue, v1.FactSeed: seed, v1.FactDatacenter: "dc-1", v1.FactProvider: "kubevirt", v1.FactKind: "Cluster",
			},
			MatchExpressions: []metav1.LabelSelectorRequirement{{
				Key: v1.FactNamespace, Operator: metav1.LabelSelectorOpNotIn, Values: []string{standins.NamespaceOf(w.names[3])},
			}},
		}
	}
	called := func(name string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{v1.FactName: name}}
	}
	w.clusters.Relabel(t, w.names[0], map[string]string{v1.FactName: w.names[2]}) // facts override labels
	of := w.write(w.set("tools", atOnce, func(of *v1.AddonSet) {
		of.Spec.ClusterSelector = facts("north")
		of.Annotations[v1.AnnotationSeed] = "north"
		of.Spec.Addons[0].ValuesFrom = []v1.ValuesSource{{ConfigMapRef: &v1.KeyReference{Name: "web-$(cluster)"}}}
		of.Spec.Overrides = []v1.AddonSetOverride{{
			ClusterSelector: called(w.names[1]), Addon: "web", Values: &runtime.RawExtension{Raw: []byte(`{"replicas":1}`)},
		}}
		of.Spec.Rollout.Groups = []v1.RolloutGroup{{Name: "canary", ClusterSelector: called(w.names[2]), Start: v1.StartAutomatic}}
	}))
	w.write(w.set("elsewhere", atOnce, func(of *v1.AddonSet) {
		of.Spec.ClusterSelector = facts("south")
		of.Annotations[v1.AnnotationSeed] = "north"
		of.Spec.Addons[0].Name, of.Spec.Addons[0].AddonRef.Name = "more", "more"
	}))
	w.start()
	w.says(of, v1.ReasonRollingOut, current(1))
	if at := w.at("1.0.0"); !slices.Equal(at, w.names[2:3]) {
		t.Errorf("the first group is %q", at)
	}
	w.open(of, 2)
	w.says(of, v1.ReasonComplete, current(3))
	if at := w.at("1.0.0"); !slices.Equal(at, w.names[:3]) {
		t.Errorf("%q have it", at)
	}
	for name, one := range w.installed("web") {
		if from := one.Spec.ValuesFrom; len(from) != 1 || from[0].ConfigMapRef.Name != "web-"+name {
			t.Errorf("in %s its values are from %+v", name, from)
		}
		if isOverridden := one.Spec.Values != nil; isOverridden != (name == w.names[1]) {
			t.Errorf("in %s its values are overridden: %t", name, isOverridden)
		}
	}
	if found := w.installed("more"); len(found) != 0 {
		t.Errorf("what is for another seed is in %d clusters", len(found))
	}
}

// TestACopyThatCantBeReadChangesNothing: the distributor writes a copy with an invalid selector. The test fails when
// that is not reported, when an installation of the set changes, and when the set does not continue after the
// selector is corrected.
func TestACopyThatCantBeReadChangesNothing(t *testing.T) {
	w := newWorld(t, 2, 0)
	w.offers("web", "1.0.0")
	of := w.write(w.set("tools", atOnce))
	w.start()
	before := w.says(of, v1.ReasonComplete, current(2))
	good := of.Spec.ClusterSelector
	w.edit(of, func(of *v1.AddonSet) {
		of.Spec.Addons[0].AddonRef.Version = "0.x" // no catalogue offers it
		of.Spec.ClusterSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "world", Operator: "Is"}}}
	})
	refused := w.says(of, v1.ReasonInvalid, current(2))
	if refused.Status.Revision != before.Status.Revision || refused.Status.ObservedGeneration != refused.Generation {
		t.Errorf("it is told as generation %d of %d, revision %q after %q",
			refused.Status.ObservedGeneration, refused.Generation, refused.Status.Revision, before.Status.Revision)
	}
	w.offers("web", "1.0.0", "1.1.0")
	w.quiet()
	if at := w.at("1.0.0"); !slices.Equal(at, w.names) {
		t.Errorf("%q have it", at)
	}
	w.edit(of, func(of *v1.AddonSet) {
		of.Spec.Addons[0].AddonRef.Version, of.Spec.ClusterSelector = "1.x", good
	})
	w.says(of, v1.ReasonComplete, current(2), func(v1.ClusterCounts) bool { return len(w.at("1.1.0")) == 2 })
}
