package addonset_test

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/standins"
)

// without removes clusters from a set's selector by their number.
func without(numbers ...string) func(*v1.AddonSet) {
	return func(of *v1.AddonSet) {
		of.Spec.ClusterSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{
			Key: "number", Operator: metav1.LabelSelectorOpNotIn, Values: numbers,
		}}
	}
}

func (w *world) edit(of *v1.AddonSet, change func(*v1.AddonSet)) {
	w.t.Helper()
	change(of)
	w.write(of)
}

func (w *world) has(count int) error {
	if found := w.installed("web"); len(found) != count {
		return fmt.Errorf("%d clusters have it, want %d", len(found), count)
	}
	return nil
}

// TestManyRemovalsWaitForApproval: 2 of 10 are removed, 6 of the rest wait for approval. The test fails when they are
// removed at once, or when the approval doesn't allow the removal.
func TestManyRemovalsWaitForApproval(t *testing.T) {
	w := newWorld(t, 10, 0)
	w.offers("web", "1.0.0")
	of := w.write(w.set("tools", atOnce))
	w.start()
	w.says(of, v1.ReasonComplete, current(10))
	w.edit(of, without("0", "1"))
	expect.Eventually(t, expect.Patience, func() error { return w.has(8) })
	w.says(of, v1.ReasonComplete, current(8))
	w.edit(of, without("0", "1", "2", "3", "4", "5", "6", "7"))
	found := w.says(of, v1.ReasonRemovalNeedsApproval)
	if removal := found.Status.Removal; removal == nil || removal.Count != 6 || removal.Word == "" {
		t.Fatalf("status.removal is %+v", removal)
	}
	w.quiet()
	if err := w.has(8); err != nil {
		t.Error(err)
	}
	of.Annotations[v1.AnnotationRemovalApproved] = found.Status.Removal.Word
	w.write(of)
	expect.Eventually(t, expect.Patience, func() error { return w.has(2) })
	w.says(of, v1.ReasonComplete, current(2))
}

// TestHowASetRemoves: Orphan writes its policy to the installation before the deletion, Release leaves the
// installation as if a user had created it.
func TestHowASetRemoves(t *testing.T) {
	w := newWorld(t, 4, 0)
	w.offers("web", "1.0.0")
	of := w.write(w.set("tools", atOnce, func(of *v1.AddonSet) { of.Spec.Removal = v1.RemovalOrphan }))
	w.start()
	w.says(of, v1.ReasonComplete, current(4))
	first := w.installed("web")[w.names[1]]
	w.hold(first, "example.com/hold")
	w.edit(of, without("1"))
	expect.Object(t, w.seed, first, func(found *v1.AddonInstallation) error {
		if found.DeletionTimestamp.IsZero() {
			return fmt.Errorf("it is not deleted")
		}
		if found.Spec.DeletionPolicy != v1.DeletionOrphan {
			t.Errorf("it is deleted with policy %s", found.Spec.DeletionPolicy)
		}
		return nil
	})
	w.edit(of, func(of *v1.AddonSet) {
		of.Spec.Removal = v1.RemovalRelease
		without("1", "2")(of)
	})
	second := w.installed("web")[w.names[2]]
	expect.Object(t, w.seed, second, func(found *v1.AddonInstallation) error {
		if found.Labels[v1.LabelSet] != "" || found.Labels[v1.LabelManagedBy] != "" || found.Annotations[v1.AnnotationMoved] != "" ||
			found.Annotations[v1.AnnotationDigest] != "" || found.Spec.AddonRef.Digest != "" {
			return fmt.Errorf("it is still the set's: %+v", found.ObjectMeta)
		}
		return nil
	})
	w.quiet()
	if second.Spec.AddonRef.Version != "1.0.0" || !second.DeletionTimestamp.IsZero() {
		t.Errorf("what was released is %+v", second.Spec)
	}
}

// TestWhatSomebodyMadeIsLeftAlone fails when an installation with a taken name is written, or one that a Cluster's
// annotation requests, or when it makes the set's Ready False; and when an unreadable annotation keeps a set from its
// cluster.
func TestWhatSomebodyMadeIsLeftAlone(t *testing.T) {
	w := newWorld(t, 4, 0)
	w.offers("web", "1.0.0")
	mine := given.Installation(standins.NamespaceOf(w.names[0]), "web", "other", "mine", given.In("3"))
	expect.Create(t, w.seed, mine)
	w.asks(w.names[1], `[{"name":"own","addonRef":{"name":"web"},"targetNamespace":"web"}]`)
	w.asks(w.names[2], `[{"name":"own",`)
	of := w.write(w.set("tools", atOnce))
	w.start()
	found := w.says(of, v1.ReasonComplete, current(2))
	for i, row := range found.Status.Clusters {
		if row.Name != w.names[i] || row.Reason != v1.ReasonNameTaken || row.State != v1.ClusterBlocked {
			t.Errorf("the status lists %+v", row)
		}
	}
	now := w.installed("web")
	if len(found.Status.Clusters) != 2 || len(now) != 3 || now[w.names[1]] != nil {
		t.Errorf("the status lists %d clusters, %d have it", len(found.Status.Clusters), len(now))
	}
	if taken := now[w.names[0]]; taken.Spec.AddonRef.Name != "other" || len(taken.Labels) != 0 {
		t.Errorf("it is %+v now", taken)
	}
	w.asks(w.names[1], "")
	w.says(of, v1.ReasonComplete, func(counts v1.ClusterCounts) bool { return counts.Current+counts.New == 3 })
}

// asks makes a Cluster request add-ons by its annotation.
func (w *world) asks(cluster, text string) {
	w.t.Helper()
	asking := &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}
	expect.Annotate(w.t, w.seed, asking, v1.AnnotationInitialInstallations, text)
}

// TestASetThatAdoptsKeepsTheInstallation: an installation that one set drops and another claims is passed on by
// its label. The test fails when the installation is recreated.
func TestASetThatAdoptsKeepsTheInstallation(t *testing.T) {
	w := newWorld(t, 2, 0)
	w.offers("web", "1.0.0")
	before := w.write(w.set("before", atOnce))
	w.start()
	w.says(before, v1.ReasonComplete, current(2))
	was := w.installed("web")
	after := w.write(w.set("after", atOnce, func(of *v1.AddonSet) { of.Spec.Priority = 1 }))
	w.says(after, v1.ReasonComplete, current(2))
	w.says(before, v1.ReasonComplete, current(2))
	for name, one := range w.installed("web") {
		if one.UID != was[name].UID || one.Labels[v1.LabelSet] != "after" || !one.DeletionTimestamp.IsZero() {
			t.Errorf("in %s it is %s of set %q, was %s", name, one.UID, one.Labels[v1.LabelSet], was[name].UID)
		}
	}
}

// TestWhatIsMissingRemovesNothing (RS60): A missing catalogue, or a missing copy of a set, on a seed removes no
// installation and begins no roll-out. The test fails when it does, also in a process that never read the missing
// object.
func TestWhatIsMissingRemovesNothing(t *testing.T) {
	w := newWorld(t, 2, 0)
	w.offers("web", "1.0.0")
	of := w.write(w.set("tools", atOnce))
	stop := w.start()
	done := w.says(of, v1.ReasonComplete, current(2))
	if err := w.seed.DeleteAllOf(t.Context(), &v1.AddonCatalogue{}, client.InNamespace(w.catalogue)); err != nil {
		t.Fatal(err)
	}
	w.quiet()
	stop()
	w.start() // a process that never read the catalogue
	w.quiet()
	found := w.says(of, v1.ReasonComplete, current(2))
	if found.Status.Revision != done.Status.Revision || !found.Status.StartedAt.Equal(done.Status.StartedAt) {
		t.Errorf("a catalogue that is away began revision %q after %q", found.Status.Revision, done.Status.Revision)
	}
	gone := copyOf(of)
	free := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null,"labels":null}}`))
	expect.Patch(t, w.seed, gone, free)
	w.quiet()
	if err := w.has(2); err != nil {
		t.Error(err)
	}
}

// TestADeletedSetGoesWhenThatIsConfirmed: before the confirmation the set continues; a paused set is deleted too, and
// each by its removal policy. The test fails when it removes anything without confirmation, or leaves an
// installation; when pausing keeps it, when a deleted installation does not have the policy Orphan, or when Release
// deletes.
func TestADeletedSetGoesWhenThatIsConfirmed(t *testing.T) {
	for _, test := range []struct {
		why    string
		change func(*v1.AddonSet)
		policy v1.DeletionPolicy
		left   int
	}{
		{"one at a time", func(of *v1.AddonSet) { of.Spec.Rollout.Groups = nil }, v1.DeletionDelete, 0},
		{"orphaned", func(of *v1.AddonSet) { of.Spec.Removal = v1.RemovalOrphan }, v1.DeletionOrphan, 0},
		{"released", func(of *v1.AddonSet) { of.Spec.Removal = v1.RemovalRelease }, v1.DeletionDelete, 3},
	} {
		t.Run(test.why, func(t *testing.T) {
			w := newWorld(t, 3, 1)
			w.offers("web", "1.0.0")
			of := w.write(w.set("tools", atOnce, test.change))
			w.start()
			w.says(of, v1.ReasonComplete, current(3))
			w.edit(of, func(of *v1.AddonSet) { of.Spec.Paused = true })
			w.says(of, v1.ReasonPaused)
			expect.Delete(t, w.seed, copyOf(of))
			expect.HasCondition(t, w.seed, copyOf(of), expect.Is(v1.ConditionDeletionBlocked, "True", v1.ReasonNotConfirmed))
			w.quiet()
			if err := w.has(3); err != nil {
				t.Error(err)
			}
			last := w.installed("web")[w.names[2]]
			w.hold(last, "example.com/hold")
			of.Annotations[v1.AnnotationConfirmDeletion] = of.Name
			w.write(of)
			if test.left == 0 {
				expect.Object(t, w.seed, last, func(found *v1.AddonInstallation) error {
					if found.DeletionTimestamp.IsZero() {
						return fmt.Errorf("it is not deleted")
					}
					return nil
				})
				if last.Spec.DeletionPolicy != test.policy {
					t.Errorf("it is deleted with policy %s", last.Spec.DeletionPolicy)
				}
				w.hold(last)
			}
			expect.Gone(t, w.seed, copyOf(of))
			if err := w.has(test.left); err != nil {
				t.Error(err)
			}
			for name, one := range w.installed("web") {
				if one.Labels[v1.LabelSet] != "" || !one.DeletionTimestamp.IsZero() || one.Spec.DeletionPolicy != test.policy {
					t.Errorf("in %s it is left as %+v, %+v", name, one.ObjectMeta, one.Spec)
				}
			}
		})
	}
}

// hold adds finalizers to an installation, in addition to the controller's own.
func (w *world) hold(of *v1.AddonInstallation, finalizers ...string) {
	w.t.Helper()
	expect.Change(w.t, w.seed, of.DeepCopy(), func(found *v1.AddonInstallation) {
		found.Finalizers = slices.DeleteFunc(found.Finalizers, func(one string) bool { return one == "example.com/hold" })
		found.Finalizers = append(found.Finalizers, finalizers...)
	})
}

// TestClustersOfAnotherWorkerAreLeftAlone: Clusters with the label of another --worker-name belong to another
// process. The test fails when one is written, when a cluster's installations are removed once it gets the label, or
// when such clusters are counted.
func TestClustersOfAnotherWorkerAreLeftAlone(t *testing.T) {
	w := newWorld(t, 4, 0)
	w.offers("web", "1.0.0")
	others := map[string]string{kkpv1.LabelWorkerName: "another"}
	w.clusters.Relabel(t, w.names[0], others)
	of := w.write(w.set("tools", atOnce))
	w.start()
	selected := func(number int32) func(v1.ClusterCounts) bool {
		return func(counts v1.ClusterCounts) bool { return counts.Selected == number && counts.Current == number }
	}
	w.says(of, v1.ReasonComplete, selected(3))
	if at := w.at("1.0.0"); !slices.Equal(at, w.names[1:]) {
		t.Errorf("%q have it", at)
	}
	w.clusters.Relabel(t, w.names[1], others)
	w.says(of, v1.ReasonComplete, selected(2))
	before := w.writes.Load()
	w.edit(of, without("1", "2"))
	w.says(of, v1.ReasonComplete, selected(1))
	expect.Eventually(t, expect.Patience, func() error { return w.has(2) })
	w.offers("web", "1.0.0", "1.1.0")
	w.says(of, v1.ReasonComplete, selected(1), func(v1.ClusterCounts) bool { return len(w.at("1.1.0")) == 1 })
	w.quiet()
	if at, written := w.at("1.0.0"), w.writes.Load()-before; !slices.Equal(at, w.names[1:2]) || written != 2 {
		t.Errorf("after %d writes, %q have what they had", written, at)
	}
}
