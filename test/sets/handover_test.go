package sets_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// TestAClusterThatMovesOnToTheNextReleasesSetKeepsItsObjects: sets of two releases of Kubernetes have the same item, and a cluster goes from
// one to the other. Red when the one removes what the other wants: the installation, and what it has in the user cluster, are made
// anew; red too when clusters that stay are touched.
func TestAClusterThatMovesOnToTheNextReleasesSetKeepsItsObjects(t *testing.T) {
	w := newWorld(t)
	fits := func(k8s v1.VersionRange) func(*v1.AddonVersion) {
		return func(version *v1.AddonVersion) { version.Constraints = &v1.Constraints{K8sVersion: k8s} }
	}
	w.offer(v1.CatalogueCustom, "cni", w.version("1.36.0", "older", fits("~1.36")), w.version("1.37.0", "newer", fits("~1.37")))
	w.run()
	set := func(name, k8s string) *v1.AddonSet {
		return w.set(name, func(spec *v1.AddonSetSpec) {
			spec.Constraints = &v1.Constraints{K8sVersion: v1.VersionRange("~" + k8s)}
			spec.Addons[0].Name, spec.Addons[0].AddonRef = "cni", v1.AddonReference{Name: "cni", Version: k8s + ".x"}
		})
	}
	older, newer := set("for-1-36", "1.36"), set("for-1-37", "1.37")
	w.says(older, v1.ReasonComplete, counts(v1.ClusterCounts{Selected: 3, Current: 3}))
	w.has("cni", "older", amber, birch, cedar)
	was, had, others := w.now(birch, "cni"), w.settings(birch, w.now(birch, "cni")), w.stateOf("cni", amber, cedar)

	moves := w.clusters[birch]
	before := moves.DeepCopy()
	moves.Status.Versions.ControlPlane = "v1.37.2"
	expect.PatchStatus(t, w.home(birch), moves, client.MergeFrom(before))
	w.has("cni", "newer", birch)
	w.says(newer, v1.ReasonComplete, counts(v1.ClusterCounts{Selected: 1, Current: 1}))
	w.says(older, v1.ReasonComplete, counts(v1.ClusterCounts{Selected: 2, Current: 2}))
	is, has := w.now(birch, "cni"), w.settings(birch, w.now(birch, "cni"))
	if is.UID != was.UID || is.Labels[v1.LabelSet] != newer.Name || !is.DeletionTimestamp.IsZero() {
		t.Errorf("the installation is %s of set %q, was %s", is.UID, is.Labels[v1.LabelSet], was.UID)
	}
	if has.UID != had.UID {
		t.Errorf("the user cluster's object is %s, was %s", has.UID, had.UID)
	}
	if now := w.stateOf("cni", amber, cedar); now != others {
		t.Errorf("the others stand otherwise:\n%sthan\n%s", now, others)
	}
}

// TestAHandOverToAnotherReleaseWaitsForTheRemoval: what one set lets go the next one wants with another release name. Red when it is taken
// over, so that two releases would own the same objects, when it is not told that it waits, or when it is not made once the old one is
// gone.
func TestAHandOverToAnotherReleaseWaitsForTheRemoval(t *testing.T) {
	w := newWorld(t)
	w.offer(v1.CatalogueCustom, "web", w.version("1.0.0", "one"))
	w.run()
	ring := func(ring string, change ...func(*v1.AddonSetSpec)) []func(*v1.AddonSetSpec) {
		return append(change, func(spec *v1.AddonSetSpec) {
			spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"ring": ring}}
			spec.Rollout.Groups = nil // a canary group that selects no cluster is no evidence
		})
	}
	older := w.set("older", ring("1")...)
	newer := w.set("newer", ring("0", func(spec *v1.AddonSetSpec) { spec.Addons[0].ReleaseName = "other" })...)
	w.has("web", "one", amber, birch, cedar)
	w.says(older, v1.ReasonComplete, counts(v1.ClusterCounts{Selected: 2, Current: 2}))
	was, others := w.now(birch, "web"), w.stateOf("web", amber, cedar)
	w.patch(was, fmt.Sprintf(`{"metadata":{"finalizers":[%q,"test.example.com/hold"]}}`, was.Finalizers[0]))

	w.patch(w.clusters[birch], `{"metadata":{"labels":{"ring":"0"}}}`)
	expect.Object(t, w.home(birch), w.installation(birch, "web"), func(found *v1.AddonInstallation) error {
		if found.DeletionTimestamp.IsZero() || !slices.Equal(found.Finalizers, []string{"test.example.com/hold"}) {
			return fmt.Errorf("it is not removed yet: %+v", found.ObjectMeta)
		}
		return nil
	})
	w.says(newer, v1.ReasonComplete, rowsSay(v1.ReasonNameTaken, 1))
	if is := w.now(birch, "web"); is.UID != was.UID || is.Labels[v1.LabelSet] != older.Name || is.Spec.ReleaseName != "" {
		t.Errorf("it is %s of set %q, release %q", is.UID, is.Labels[v1.LabelSet], is.Spec.ReleaseName)
	}
	w.patch(w.now(birch, "web"), `{"metadata":{"finalizers":null}}`)
	expect.Object(t, w.home(birch), w.installation(birch, "web"), func(found *v1.AddonInstallation) error {
		if found.UID == was.UID || found.Labels[v1.LabelSet] != newer.Name || found.Spec.ReleaseName != "other" {
			return fmt.Errorf("it is %s of set %q, release %q", found.UID, found.Labels[v1.LabelSet], found.Spec.ReleaseName)
		}
		return nil
	})
	w.has("web", "one", birch)
	w.says(newer, v1.ReasonComplete, rowsSay(v1.ReasonNameTaken, 0), counts(v1.ClusterCounts{Selected: 2, Current: 2}))
	w.says(older, v1.ReasonComplete, counts(v1.ClusterCounts{Selected: 1, Current: 1}))
	if now := w.stateOf("web", amber, cedar); now != others {
		t.Errorf("the others stand otherwise:\n%sthan\n%s", now, others)
	}
}

// TestAnItemWithClaimsWaitsForApproval: one cluster is unselected, and what it has holds data. Red when the number of removals alone asks for
// approval, or when the installation says nothing of its claims; red too when the approval doesn't let it go.
func TestAnItemWithClaimsWaitsForApproval(t *testing.T) {
	w := newWorld(t)
	w.offer(v1.CatalogueCustom, "web", w.version("1.0.0", "one", func(version *v1.AddonVersion) {
		version.Values = valuesOf(map[string]any{"text": "one", "replicas": 0, "claim": true})
	}))
	w.run()
	of := w.set("tools", func(spec *v1.AddonSetSpec) { spec.Rollout.Groups = nil })
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: w.target, Name: "data"}}
	for _, user := range []string{amber, birch, cedar} { // bound, as by a provisioner
		expect.Object(t, w.users[user], claim, func(claim *corev1.PersistentVolumeClaim) error {
			claim.Status.Phase = corev1.ClaimBound
			return w.users[user].Status().Update(t.Context(), claim)
		})
	}
	w.has("web", "one", amber, birch, cedar)
	w.says(of, v1.ReasonComplete)
	w.edit(of, func(spec *v1.AddonSetSpec) {
		spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"ring": "1"}}
	})
	found := w.says(of, v1.ReasonRemovalNeedsApproval)
	if removal := found.Status.Removal; removal == nil || removal.Count != 1 || removal.Word == "" {
		t.Fatalf("status.removal is %+v", removal)
	}
	w.stay("web", amber, birch, cedar)
	w.annotate(of, v1.AnnotationRemovalApproved, found.Status.Removal.Word)
	expect.Object(t, w.users[amber], claim, func(claim *corev1.PersistentVolumeClaim) error { // nobody else lets go what no pod uses
		if claim.DeletionTimestamp.IsZero() {
			return fmt.Errorf("it is not deleted")
		}
		claim.Finalizers = nil
		return w.users[amber].Update(t.Context(), claim)
	})
	expect.Gone(t, w.home(amber), w.installation(amber, "web"))
	if text := w.text(birch, w.now(birch, "web")); text != "one" {
		t.Errorf("a cluster that stays has %q", text)
	}
}

// TestATagThatIsPushedAgainWaitsForAMove: the source has another image under the version's tag. Red when it is taken by itself, when that is
// not told, when it is no reason for the set to be anything but Complete, or when the next move does not take it.
func TestATagThatIsPushedAgainWaitsForAMove(t *testing.T) {
	w := newWorld(t)
	push := func(note string) {
		t.Helper()
		if _, err := w.sources.Image("team/web", "one", map[string]string{"all.yaml": manifests + "# " + note + "\n", "more.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: pushed}
data: {note: ` + note + "}\n"}); err != nil {
			t.Fatal(err)
		}
	}
	push("first")
	w.offer(v1.CatalogueCustom, "web", w.version("1.0.0", "one", func(version *v1.AddonVersion) {
		version.Source = &v1.Source{Docker: &v1.ImageSource{
			Image: w.sources.Registry + "/team/web:one", CASecretRef: &v1.LocalReference{Name: "authority"},
		}}
	}))
	w.run()
	of := w.set("tools")
	notes := func() (text string) {
		for _, user := range []string{amber, birch, cedar} {
			found := &corev1.ConfigMap{}
			expect.Get(t, w.users[user], client.ObjectKey{Namespace: w.target, Name: "pushed"}, found)
			text += found.Data["note"] + " "
		}
		return text
	}
	w.says(of, v1.ReasonComplete)
	push("second")
	for _, user := range []string{amber, birch, cedar} {
		w.patch(w.clusters[user], `{"metadata":{"labels":{"touched":"true"}}}`)
		w.saysOf(user, "web", [2]string{v1.ConditionReady, v1.ReasonReady}, [2]string{v1.ConditionFetched, v1.ReasonArtifactMoved})
	}
	w.says(of, v1.ReasonComplete)
	if text := notes(); text != strings.Repeat("first ", 3) {
		t.Errorf("the user clusters have %s", text)
	}
	w.edit(of, func(spec *v1.AddonSetSpec) {
		spec.Addons[0].Values = &runtime.RawExtension{Raw: []byte(`{"text":"two"}`)}
	})
	w.has("web", "two", amber, birch, cedar)
	w.says(of, v1.ReasonComplete)
	w.inOrder("web", amber, birch, cedar)
	if text := notes(); text != strings.Repeat("second ", 3) {
		t.Errorf("after the move the user clusters have %s", text)
	}
}

// TestOnceMovesAndAppliesNothingMore: an item of strategy Once is done with its first Ready, whatever the soak time, and another version is
// written and not applied. Red when the soak time counts for it, or when the set waits for a version that is never applied.
func TestOnceMovesAndAppliesNothingMore(t *testing.T) {
	w := newWorld(t)
	w.offer(v1.CatalogueCustom, "web", w.version("1.0.0", "one"))
	w.run()
	of := w.set("tools", func(spec *v1.AddonSetSpec) {
		spec.Addons[0].ReconcileStrategy = v1.ReconcileOnce
		spec.Rollout.Soak = &metav1.Duration{Duration: expect.Patience * 10}
	})
	w.has("web", "one", amber, birch, cedar)
	w.says(of, v1.ReasonComplete)
	w.offer(v1.CatalogueCustom, "web", w.version("1.0.0", "one"), w.version("1.1.0", "two"))
	for _, user := range []string{amber, birch, cedar} {
		w.asks(user, "web", "1.1.0")
	}
	w.says(of, v1.ReasonComplete)
	w.has("web", "one", amber, birch, cedar)
}

// TestItemsComeInOrderAndGoInReverse: one item of a set depends on another. Red when dependsOn is not written to the installation: both
// are applied at once; or when the removal of both goes in the same order.
func TestItemsComeInOrderAndGoInReverse(t *testing.T) {
	w := newWorld(t)
	w.offer(v1.CatalogueCustom, "web", w.version("1.0.0", "one"))
	w.offer(v1.CatalogueCustom, "base", w.version("1.0.0", "base"))
	below := fmt.Sprintf("below-%d", worlds)
	for _, user := range w.users {
		expect.Create(t, user, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: below}})
	}
	w.run()
	of := w.set("tools", func(spec *v1.AddonSetSpec) {
		spec.Rollout.Groups = nil
		spec.Addons[0].DependsOn = []v1.AddonName{"base"}
		spec.Addons = append(spec.Addons, v1.AddonSetItem{
			Name: "base", AddonRef: v1.AddonReference{Name: "base"}, TargetNamespace: below,
			Values: valuesOf(map[string]any{"replicas": 1}),
		})
	})
	for _, user := range []string{amber, birch, cedar} {
		w.saysOf(user, "web", [2]string{v1.ConditionReady, v1.ReasonWaitingForOrder})
	}
	w.edit(of, func(spec *v1.AddonSetSpec) { spec.Addons[1].Values = nil })
	w.has("web", "one", amber, birch, cedar)
	w.says(of, v1.ReasonComplete)
	hold := w.now(amber, "web")
	w.patch(hold, fmt.Sprintf(`{"metadata":{"finalizers":[%q,"test.example.com/hold"]}}`, hold.Finalizers[0]))
	w.edit(of, func(spec *v1.AddonSetSpec) {
		spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"ring": "1"}}
	})
	w.saysOf(amber, "base", [2]string{v1.ConditionReady, v1.ReasonWaitingForOrder})
	if text := w.text(amber, w.now(amber, "base")); text != "base" {
		t.Errorf("what the other depends on is removed already: %q", text)
	}
	w.patch(w.now(amber, "web"), `{"metadata":{"finalizers":null}}`)
	expect.Gone(t, w.home(amber), w.installation(amber, "base"))
}
