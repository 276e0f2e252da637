package sets_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	kit "github.com/trellis-addons/trellis/test/world"
)

// item is one that is in a namespace of its own in user clusters, which have it: no API server here has a controller that ends namespaces.
func (w *world) item(name string, clusters ...string) v1.AddonSetItem {
	w.t.Helper()
	there := w.target + "-" + name
	for _, cluster := range clusters {
		expect.Create(w.t, w.users[cluster], kit.Namespace(there))
	}
	return v1.AddonSetItem{Name: v1.AddonName(name), AddonRef: v1.AddonReference{Name: "web", Version: "1.x"}, TargetNamespace: there}
}

// versions of the installations of clusters, as "cluster item".
func (w *world) versions(clusters ...string) map[string]string {
	w.t.Helper()
	found := map[string]string{}
	for _, cluster := range clusters {
		var list v1.AddonInstallationList
		expect.List(w.t, w.home(cluster), &list, client.InNamespace(w.clusters[cluster].Status.NamespaceName))
		for i := range list.Items {
			found[cluster+" "+list.Items[i].Name] = list.Items[i].Spec.AddonRef.Version
		}
	}
	return found
}

// gone waits until user clusters have nothing of an add-on in a namespace any more.
func (w *world) gone(namespace string, clusters ...string) {
	w.t.Helper()
	for _, cluster := range clusters {
		expect.Eventually(w.t, expect.Patience, func() error {
			err := w.users[cluster].Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: "settings"}, &corev1.ConfigMap{})
			if err == nil {
				err = fmt.Errorf("%s has it in namespace %s", cluster, namespace)
			}
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
	}
}

// What the master's set tells of changes that wait for approval is what is written to user clusters once somebody approves. Red when a
// change is told that is not written, or written and not told, when anything is written before the word, or when the word opens nothing.
func TestWhatWaitsForApprovalIsWhatUserClustersGet(t *testing.T) {
	w := newWorld(t)
	w.offer(v1.CatalogueCustom, "web", w.version("1.0.0", "one"))
	w.patch(w.clusters[cedar], `{"metadata":{"labels":{"ring":"2"}}}`)
	w.run()
	of := w.set("tools", func(spec *v1.AddonSetSpec) {
		spec.Rollout.Groups = []v1.RolloutGroup{{Name: "all", ClusterSelector: &metav1.LabelSelector{}, Start: v1.StartApproved}}
	})
	all := []string{amber, birch, cedar}
	waits := w.says(of, v1.ReasonAwaitingApproval, pending(map[string]int32{"web Install  1.0.0": 3}))
	if made := w.versions(all...); len(made) > 0 {
		t.Errorf("before the word there are %v", made)
	}
	w.annotate(of, v1.AnnotationApprove, waits.Status.Revision+"/all")
	w.has("web", "one", all...)
	w.says(of, v1.ReasonComplete)

	more := w.item("more", amber, birch)
	w.edit(of, func(spec *v1.AddonSetSpec) {
		spec.ClusterSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "ring", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"2"}},
		}}
		spec.Addons = append(spec.Addons, more)
	})
	w.offer(v1.CatalogueCustom, "web", w.version("1.0.0", "one"), w.version("1.1.0", "two"))
	waits = w.says(of, v1.ReasonAwaitingApproval, pending(map[string]int32{
		"web Update 1.0.0 1.1.0": 2, "more Install  1.1.0": 2, "web Remove 1.0.0 ": 1,
	}))
	w.stay("web", all...)
	w.annotate(of, v1.AnnotationApprove, waits.Status.Revision+"/all")
	w.has("web", "two", amber, birch)
	w.has("more", "two", amber, birch)
	w.gone(w.target, cedar)
	w.says(of, v1.ReasonComplete, counts(v1.ClusterCounts{Selected: 2, Current: 2}))
	want := map[string]string{"amber web": "1.1.0", "amber more": "1.1.0", "birch web": "1.1.0", "birch more": "1.1.0"}
	if diff := cmp.Diff(want, w.versions(all...)); diff != "" {
		t.Errorf("installations (-pending +written):\n%s", diff)
	}
}

// pending says which changes a set is to tell, as "item change from to", of how many clusters.
func pending(want map[string]int32) func(*v1.AddonSet) error {
	return func(found *v1.AddonSet) error {
		reported := map[string]int32{}
		for _, one := range found.Status.Pending {
			reported[fmt.Sprintf("%s %s %s %s", one.Item, one.Change, one.From, one.To)] += one.Clusters
		}
		if diff := cmp.Diff(want, reported); diff != "" {
			return fmt.Errorf("pending (-want +got):\n%s", diff)
		}
		return nil
	}
}

// slowIn has an item change everywhere and never get Ready where clusters have a ring.
func slowIn(ring string) func(*v1.AddonSetSpec) {
	return func(spec *v1.AddonSetSpec) {
		spec.Addons[0].Values = valuesOf(map[string]any{"text": "two"})
		spec.Overrides = []v1.AddonSetOverride{{
			ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"ring": ring}}, Addon: "web",
			Values: valuesOf(map[string]any{"replicas": 1}),
		}}
	}
}

// A user cluster that comes while its set is halted gets what the set says now, and those that wait don't. Red when it gets the revision
// before, or nothing, and when its coming lets the others go on.
func TestAClusterThatComesDuringAHaltGetsTheNewRevision(t *testing.T) {
	w := newWorld(t)
	w.offer(v1.CatalogueCustom, "web", w.version("1.0.0", "one"))
	w.run()
	of := w.set("tools")
	w.has("web", "one", amber, birch, cedar)
	w.says(of, v1.ReasonComplete)
	w.edit(of, func(spec *v1.AddonSetSpec) {
		slowIn("0")(spec)
		spec.Rollout.ProgressDeadline = &metav1.Duration{Duration: 4 * time.Second} // only what never ends comes to it
	})
	w.says(of, v1.ReasonHalted)
	before := w.stateOf("web", birch, cedar)
	w.addCluster(placed{dune, "seed", dune, "1"})
	w.has("web", "two", dune)
	w.says(of, v1.ReasonHalted, counts(v1.ClusterCounts{Selected: 4, New: 1, Failed: 1, Behind: 2}))
	w.stay("web", birch, cedar)
	w.expectSame("those that wait", before, w.stateOf("web", birch, cedar))
}

// In the middle of a wave a user cluster is added, one that waits gets into the group before, and the one that moves is deleted. Red when
// the wave waits for what is not there any more, or when one of the others is not written, or not by what it is now.
func TestUserClustersThatChangeInTheMiddleOfAWave(t *testing.T) {
	w := newWorld(t)
	w.offer(v1.CatalogueCustom, "web", w.version("1.0.0", "one"))
	w.run()
	of := w.set("tools", func(spec *v1.AddonSetSpec) { spec.Rollout.MaxConcurrency = new(intstr.FromInt32(1)) })
	w.has("web", "one", amber, birch, cedar)
	w.says(of, v1.ReasonComplete)
	w.edit(of, slowIn("1"))
	w.has("web", "two", amber)
	moves, waits := birch, cedar
	expect.Eventually(t, expect.Patience, func() error {
		switch texts := w.text(birch, w.now(birch, "web")) + " " + w.text(cedar, w.now(cedar, "web")); texts {
		case "two one":
		case "one two":
			moves, waits = cedar, birch
		default:
			return fmt.Errorf("behind the canary there are %q", texts)
		}
		return nil
	})
	w.addCluster(placed{dune, "seed", dune, "2"})
	w.has("web", "two", dune)
	w.patch(w.clusters[waits], `{"metadata":{"labels":{"ring":"0"}}}`)
	w.has("web", "two", waits)
	w.saysOf(moves, "web", [2]string{v1.ConditionReady, v1.ReasonProgressing})
	expect.Delete(t, w.home(moves), w.clusters[moves])
	w.says(of, v1.ReasonComplete, counts(v1.ClusterCounts{Selected: 3, Current: 2, New: 1}))
}

// Two of ten installations go from user clusters at once, six of those that are left wait for approval. Red when they go without it, when
// the word doesn't let them go, or when objects stay behind in user clusters.
func TestManyRemovalsFromUserClustersWaitForApproval(t *testing.T) {
	w := newWorld(t)
	w.offer(v1.CatalogueCustom, "web", w.version("1.0.0", "one"))
	w.run()
	both := []string{amber, birch}
	var items []v1.AddonSetItem
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		items = append(items, w.item(name, both...))
	}
	of := w.set("tools", func(spec *v1.AddonSetSpec) {
		spec.ClusterSelector, spec.Addons = &metav1.LabelSelector{MatchLabels: map[string]string{"many": "yes"}}, items
	})
	for _, cluster := range both {
		w.patch(w.clusters[cluster], `{"metadata":{"labels":{"many":"yes"}}}`)
	}
	for _, one := range items {
		w.has(string(one.Name), "one", both...)
	}
	w.says(of, v1.ReasonComplete, counts(v1.ClusterCounts{Selected: 2, Current: 2}))

	w.edit(of, func(spec *v1.AddonSetSpec) { spec.Addons = spec.Addons[:4] })
	names := w.clusters[amber].Name + ", " + w.clusters[birch].Name
	last := w.says(of, v1.ReasonRemovalNeedsApproval, message("2 removals wait for approval in: "+names))
	w.annotate(of, v1.AnnotationRemovalApproved, last.Status.Removal.Word)
	w.gone(w.target+"-e", both...)
	w.says(of, v1.ReasonComplete, counts(v1.ClusterCounts{Selected: 2, Current: 2}))
	w.edit(of, func(spec *v1.AddonSetSpec) { spec.Addons = spec.Addons[:1] })
	found := w.says(of, v1.ReasonRemovalNeedsApproval, func(found *v1.AddonSet) error {
		if removal := found.Status.Removal; removal == nil || removal.Count != 6 || removal.Word == "" {
			return fmt.Errorf("status.removal is %+v", removal)
		}
		return nil
	})
	for _, name := range []string{"b", "c", "d"} {
		w.objectsStay(w.target+"-"+name, both...)
	}
	if left := len(w.versions(both...)); left != 8 {
		t.Fatalf("there are %d installations, want 8", left)
	}
	w.annotate(of, v1.AnnotationRemovalApproved, found.Status.Removal.Word)
	for _, name := range []string{"b", "c", "d"} {
		w.gone(w.target+"-"+name, both...)
	}
	w.says(of, v1.ReasonComplete, counts(v1.ClusterCounts{Selected: 2, Current: 2}))
	w.has("a", "one", both...)
}
