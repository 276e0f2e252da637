package addonset_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/standins"
	kit "github.com/trellis-addons/trellis/test/world"
)

// without takes clusters out of a set's selector by their number.
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

// TestManyRemovalsWaitForApproval: 2 of 10 go, 6 of what is left wait until somebody approves them. Red when they go at once, or when
// the word doesn't let them go.
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
	w.quiet(2 * time.Second)
	if err := w.has(8); err != nil {
		t.Error(err)
	}
	of.Annotations[v1.AnnotationRemovalApproved] = found.Status.Removal.Word
	w.write(of)
	expect.Eventually(t, expect.Patience, func() error { return w.has(2) })
	w.says(of, v1.ReasonComplete, current(2))
}

// TestHowASetRemoves: Orphan says so on the installation before it is deleted, Release leaves it as if it were made by hand.
func TestHowASetRemoves(t *testing.T) {
	w := newWorld(t, 4, 0)
	w.offers("web", "1.0.0")
	of := w.write(w.set("tools", atOnce, func(of *v1.AddonSet) { of.Spec.Removal = v1.RemovalOrphan }))
	w.start()
	w.says(of, v1.ReasonComplete, current(4))
	hold := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":["example.com/hold"]}}`))
	first := w.installed("web")[w.names[1]]
	if err := w.seed.Patch(t.Context(), first, hold); err != nil {
		t.Fatal(err)
	}
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
	w.quiet(time.Second)
	if second.Spec.AddonRef.Version != "1.0.0" || !second.DeletionTimestamp.IsZero() {
		t.Errorf("what was released is %+v", second.Spec)
	}
}

// TestWhatSomebodyMadeIsLeftAlone turns red when a taken name is written to, or makes the set's Ready False.
func TestWhatSomebodyMadeIsLeftAlone(t *testing.T) {
	w := newWorld(t, 2, 0)
	w.offers("web", "1.0.0")
	mine := &v1.AddonInstallation{
		ObjectMeta: metav1.ObjectMeta{Namespace: standins.NamespaceOf(w.names[0]), Name: "web"},
		Spec:       v1.AddonInstallationSpec{AddonRef: v1.AddonReference{Name: "other", Version: "3"}, TargetNamespace: "mine"},
	}
	kit.Create(t, w.seed, mine)
	of := w.write(w.set("tools", atOnce))
	w.start()
	found := w.says(of, v1.ReasonComplete)
	if rows := found.Status.Clusters; len(rows) != 1 || rows[0].Reason != v1.ReasonNameTaken || rows[0].State != v1.ClusterBlocked {
		t.Errorf("the status lists %+v", rows)
	}
	now := w.installed("web")
	if len(now) != 2 || now[w.names[0]].Spec.AddonRef.Name != "other" || len(now[w.names[0]].Labels) != 0 {
		t.Errorf("it is %+v now", now[w.names[0]])
	}
}

// TestASetThatTakesOverKeepsTheInstallation: what one set lets go and another wants goes over by its label. Red when it is made anew.
func TestASetThatTakesOverKeepsTheInstallation(t *testing.T) {
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

// RS60: What is missing on a seed, catalogues or the copy of a set, removes no installation and begins no roll-out. Red when it does, in a
// process that never saw what is missing too.
func TestWhatIsMissingRemovesNothing(t *testing.T) {
	w := newWorld(t, 2, 0)
	w.offers("web", "1.0.0")
	of := w.write(w.set("tools", atOnce))
	stop := w.start()
	done := w.says(of, v1.ReasonComplete, current(2))
	if err := w.seed.DeleteAllOf(t.Context(), &v1.AddonCatalogue{}, client.InNamespace(w.catalogue)); err != nil {
		t.Fatal(err)
	}
	w.quiet(2 * time.Second)
	stop()
	w.start() // a process that never saw the catalogue
	w.quiet(2 * time.Second)
	found := w.says(of, v1.ReasonComplete, current(2))
	if found.Status.Revision != done.Status.Revision || !found.Status.StartedAt.Equal(done.Status.StartedAt) {
		t.Errorf("a catalogue that is away began revision %q after %q", found.Status.Revision, done.Status.Revision)
	}
	gone := copyOf(of)
	free := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null,"labels":null}}`))
	if err := w.seed.Patch(t.Context(), gone, free); err != nil {
		t.Fatal(err)
	}
	w.quiet(2 * time.Second)
	if err := w.has(2); err != nil {
		t.Error(err)
	}
}

// TestADeletedSetGoesWhenThatIsConfirmed: before, it lives on. Red when it removes anything unconfirmed, or leaves something.
func TestADeletedSetGoesWhenThatIsConfirmed(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.offers("web", "1.0.0")
	of := w.write(w.set("tools", func(of *v1.AddonSet) { of.Spec.Rollout.Groups = nil }))
	w.start()
	w.says(of, v1.ReasonComplete, current(3))
	if err := w.seed.Delete(t.Context(), copyOf(of)); err != nil {
		t.Fatal(err)
	}
	expect.Object(t, w.seed, copyOf(of), func(found *v1.AddonSet) error {
		return expect.Condition(found, v1.ConditionDeletionBlocked, "True", v1.ReasonNotConfirmed)
	})
	w.quiet(time.Second)
	if err := w.has(3); err != nil {
		t.Error(err)
	}
	of.Annotations[v1.AnnotationConfirmDeletion] = of.Name
	w.write(of)
	expect.Gone(t, w.seed, copyOf(of))
	if err := w.has(0); err != nil {
		t.Error(err)
	}
}
