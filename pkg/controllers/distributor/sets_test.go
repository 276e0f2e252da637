package distributor_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/test/expect"
)

// Red when a seed doesn't get a set, can't tell it from what others write, or the master says too early that all is done.
func TestASetIsCopiedToEverySeed(t *testing.T) {
	w := newWorld(t)
	w.twoSeeds()
	w.start()
	set := w.setOf("monitoring")
	expect.Create(w.t, w.master, set)
	for seed := range places {
		found := w.expectCopy(seed, set, carriedBy(set))
		if found.Labels[v1.LabelRole] != v1.RoleCopy || found.Annotations[v1.AnnotationSeed] != seed ||
			found.Annotations[v1.AnnotationCreated] != set.CreationTimestamp.UTC().Format(time.RFC3339) {
			t.Errorf("labels %v, annotations %v", found.Labels, found.Annotations)
		}
	}
	key := expect.Object(t, w.master, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: v1.SecretCatalogueKey}},
		func(*corev1.Secret) error { return nil })
	if !catalogue.IsSetMarked(key.Data[v1.MarkKeyField], w.expectCopy("north", set, carriedBy(set))) {
		t.Error("the copy is not marked")
	}
	w.expectSet(set, v1.ConditionReady, "False", v1.ReasonSeedsBehind)
	w.seedSays("north", set, "r1", done(1), done(3))
	w.seedSays("south", set, "r1", done(1), done(2))
	status := w.expectSet(set, v1.ConditionReady, "True", v1.ReasonComplete).Status
	if status.Counts.Selected != 7 || status.Groups[1].Counts.Current != 5 || status.Revision != "r1" || len(status.Seeds) != 2 || !status.Seeds[0].Synced {
		t.Errorf("status %+v", status)
	}
	// An edit is on its way until the seeds say so.
	editSet(w, set, func(set *v1.AddonSet) { set.Spec.Priority = 7 })
	for seed := range places {
		w.expectCopy(seed, set, carriedBy(set))
	}
	w.expectSet(set, v1.ConditionReady, "False", v1.ReasonSeedsBehind)
	w.seedSays("north", set, "r2", done(1), done(3))
	w.seedSays("south", set, "r2", done(1), done(2))
	w.expectSet(set, v1.ConditionReady, "True", v1.ReasonComplete)
	// So is one of a catalogue that it depends on.
	custom := w.catalogueOf("custom", nil)
	expect.Change(w.t, w.master, custom, func(object *v1.AddonCatalogue) { object.Spec.Addons = []v1.Addon{addonOf("web", "1.0.0", "1.1.0")} })
	w.expectSet(set, v1.ConditionReady, "False", v1.ReasonSeedsBehind)
}

// Red when what somebody does to a copy stays, or the seed's own part of it is written over.
func TestACopyThatIsEditedOrDeletedIsPutBack(t *testing.T) {
	w := newWorld(t)
	w.twoSeeds()
	w.start()
	set := w.setOf("monitoring")
	expect.Create(w.t, w.master, set)
	w.seedSays("south", set, "r1", behind(1), behind(2))
	w.seedSays("north", set, "r1", behind(1), behind(2))
	w.expectGate("south", set, "r1/1")
	there := w.client("seed")
	for why, change := range map[string]func(*v1.AddonSet){
		"its spec":             func(copied *v1.AddonSet) { copied.Spec.Priority = 9 },
		"its gate":             func(copied *v1.AddonSet) { copied.Annotations[v1.AnnotationGate] = "r1/2" },
		"its digest":           func(copied *v1.AddonSet) { copied.Annotations[v1.AnnotationDigest] = "sha256:other" },
		"its labels":           func(copied *v1.AddonSet) { copied.Labels = map[string]string{"mine": "now"} },
		"a removal's approval": func(copied *v1.AddonSet) { copied.Annotations[v1.AnnotationRemovalApproved] = "6-word" },
	} {
		t.Run(why, func(t *testing.T) {
			copied := w.expectCopy("south", set, func(*v1.AddonSet) error { return nil })
			expect.Change(t, there, copied, func(copied *v1.AddonSet) {
				controllerutil.AddFinalizer(copied, v1.FinalizerCleanupSet) // as the seed's controller does
				change(copied)
			})
			back := w.expectCopy("south", set, func(copied *v1.AddonSet) error {
				if copied.Annotations[v1.AnnotationGate] != "r1/1" || copied.Annotations[v1.AnnotationRemovalApproved] != "" ||
					copied.Labels[v1.LabelRole] != v1.RoleCopy || copied.Labels["mine"] != "" {
					return fmt.Errorf("labels %v, annotations %v", copied.Labels, copied.Annotations)
				}
				return carriedBy(set)(copied)
			})
			if back.Status.Revision != "r1" || !controllerutil.ContainsFinalizer(back, v1.FinalizerCleanupSet) {
				t.Errorf("what the seed wrote is gone: finalizers %v, status %+v", back.Finalizers, back.Status)
			}
		})
	}
	copied := w.expectCopy("south", set, func(*v1.AddonSet) error { return nil })
	before := copied.DeepCopy()
	copied.Finalizers = nil
	expect.Patch(t, there, copied, client.MergeFrom(before))
	expect.Delete(t, there, copied)
	w.expectCopy("south", set, func(found *v1.AddonSet) error {
		if found.UID == copied.UID {
			return fmt.Errorf("it is still the old one")
		}
		return carriedBy(set)(found)
	})
}

// Bar 6. Red when a seed may open a group that another one has not come to, or a group that has to be approved.
func TestAGroupOpensOnceAllSeedsDidTheOneBefore(t *testing.T) {
	w := newWorld(t)
	w.twoSeeds()
	w.start()
	set := w.setOf("monitoring")
	set.Spec.Rollout.Groups = append(set.Spec.Rollout.Groups[:1:1], set.Spec.Rollout.Groups[1:]...)
	expect.Create(w.t, w.master, set)
	w.seedSays("north", set, "r1", behind(1), behind(3))
	w.seedSays("south", set, "s1", behind(1), behind(2))
	w.expectGate("north", set, "r1/1")
	w.expectGate("south", set, "s1/1")
	w.seedSays("north", set, "r1", done(1), behind(3))
	w.expectSet(set, v1.ConditionReady, "False", v1.ReasonRollingOut)
	w.steady(func() error {
		for seed := range places {
			copied := w.copyOf(set)
			if err := w.client(places[seed]).Get(t.Context(), client.ObjectKeyFromObject(copied), copied); err != nil {
				return err
			}
			if gate := copied.Annotations[v1.AnnotationGate]; gate != "r1/1" && gate != "s1/1" {
				return fmt.Errorf("gate %s on %s while the other has not done the first group", gate, seed)
			}
		}
		return nil
	})
	w.seedSays("south", set, "s1", done(1), behind(2))
	w.expectGate("north", set, "r1/2")
	w.expectGate("south", set, "s1/2")
}

// Bar 6. Red when failures of several seeds are not summed: one each is below the limit of one, and two are above.
func TestFailuresOfAllSeedsHaltAll(t *testing.T) {
	w := newWorld(t)
	w.twoSeeds()
	w.start()
	set := w.setOf("monitoring")
	set.Spec.Rollout.MaxFailures = new(intstr.FromInt32(1))
	expect.Create(w.t, w.master, set)
	w.seedSays("north", set, "r1", failing(3, 1), behind(3))
	w.seedSays("south", set, "r1", failing(3, 0), behind(2))
	w.expectGate("north", set, "r1/2")
	w.seedSays("south", set, "r1", failing(3, 1), behind(2))
	w.expectGate("north", set, "r1/0")
	w.expectGate("south", set, "r1/0")
	w.expectSet(set, v1.ConditionReady, "False", v1.ReasonHalted)
	// One recovers.
	w.seedSays("south", set, "r1", done(3), behind(2))
	w.expectGate("south", set, "r1/2")
}

// Red when annotation approve opens nothing, or another group or revision than it names.
func TestApprovalOpensAGroup(t *testing.T) {
	w := newWorld(t)
	w.twoSeeds()
	w.start()
	set := w.setOf("monitoring")
	set.Spec.Rollout.Groups[0].Start = v1.StartApproved
	expect.Create(w.t, w.master, set)
	for seed := range places {
		w.seedSays(seed, set, "r1", behind(1), behind(2))
		w.expectGate(seed, set, "r1/0")
	}
	w.expectSet(set, v1.ConditionReady, "False", v1.ReasonAwaitingApproval)
	approve := func(value string) {
		editSet(w, set, func(set *v1.AddonSet) { metav1.SetMetaDataAnnotation(&set.ObjectMeta, v1.AnnotationApprove, value) })
	}
	approve("r0/canary")
	w.steady(func() error {
		copied := w.copyOf(set)
		if err := w.master.Get(t.Context(), client.ObjectKeyFromObject(copied), copied); err != nil || copied.Annotations[v1.AnnotationGate] == "r1/0" {
			return err
		}
		return fmt.Errorf("gate %s by the approval of another revision", copied.Annotations[v1.AnnotationGate])
	})
	approve("r1/canary")
	w.expectGate("north", set, "r1/1")
	w.expectGate("south", set, "r1/1")
}

// Red when what is refused gets to a seed, or takes away what it had.
func TestSeedsKeepTheLastGoodCopyOfASetThatIsRefused(t *testing.T) {
	w := newWorld(t)
	w.twoSeeds()
	w.start()
	set := w.setOf("monitoring")
	expect.Create(w.t, w.master, set)
	good := w.expectCopy("south", set, carriedBy(set)).DeepCopy()
	editSet(w, set, func(set *v1.AddonSet) { set.Spec.Addons[0].DependsOn = []v1.AddonName{"nobody"} })
	w.expectSet(set, v1.ConditionReady, "False", v1.ReasonInvalid)
	w.steady(func() error {
		found := w.copyOf(set)
		if err := w.client("seed").Get(t.Context(), client.ObjectKeyFromObject(found), found); err != nil {
			return err
		}
		if found.UID != good.UID || found.Generation != good.Generation {
			return fmt.Errorf("generation %d, want %d", found.Generation, good.Generation)
		}
		return nil
	})
	editSet(w, set, func(set *v1.AddonSet) { set.Spec.Addons[0].DependsOn = nil; set.Spec.Priority = 3 })
	w.expectCopy("south", set, carriedBy(set))
}
