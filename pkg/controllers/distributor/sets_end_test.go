package distributor_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// Red when a set that made installations goes without a word, when copies go that nobody let go, or when the set is gone before a
// seed has told that its copy is.
func TestASetIsDeletedOnceThatIsConfirmed(t *testing.T) {
	w := newWorld(t)
	w.twoSeeds()
	w.start()
	set := w.setOf("monitoring")
	expect.Create(w.t, w.master, set)
	for seed := range places {
		w.seedSays(seed, set, "r1", done(1), done(2))
	}
	w.expectSet(set, v1.ConditionReady, "True", v1.ReasonComplete)
	south := w.expectCopy("south", set, carriedBy(set))
	expect.Change(t, w.client("seed"), south, func(south *v1.AddonSet) { controllerutil.AddFinalizer(south, v1.FinalizerCleanupSet) })
	expect.Delete(t, w.master, set)
	w.expectSet(set, v1.ConditionDeletionBlocked, "True", v1.ReasonNotConfirmed)
	w.expectCopy("north", set, func(found *v1.AddonSet) error {
		if found.DeletionTimestamp != nil {
			t.Error("a copy is deleted, and nobody confirmed it")
		}
		return nil
	})
	expect.Change(w.t, w.master, set, func(set *v1.AddonSet) {
		metav1.SetMetaDataAnnotation(&set.ObjectMeta, v1.AnnotationConfirmDeletion, set.Name)
	})
	expect.Gone(t, w.master, w.copyOf(set))
	south = w.expectCopy("south", set, func(found *v1.AddonSet) error {
		if found.DeletionTimestamp == nil || found.Annotations[v1.AnnotationConfirmDeletion] != set.Name {
			return fmt.Errorf("not deleted: annotations %v", found.Annotations)
		}
		return nil
	})
	found := w.expectSet(set, v1.ConditionReady, "False", v1.ReasonRemoving)
	if !controllerutil.ContainsFinalizer(found, v1.FinalizerCleanupSet) {
		t.Error("the set does not wait for the seed")
	}
	before := south.DeepCopy()
	controllerutil.RemoveFinalizer(south, v1.FinalizerCleanupSet)
	expect.Patch(t, w.client("seed"), south, client.MergeFrom(before))
	expect.Gone(t, w.master, set)
}

// Of two sets of type Core one counts, here by its name. Red when the other is brought to a seed, when it is not told why not, or when it
// does not follow once the first is gone.
func TestASecondCoreSetFollowsTheFirst(t *testing.T) {
	w := newWorld(t)
	w.twoSeeds()
	w.start()
	core := func(name string) *v1.AddonSet {
		set := w.setOf(name)
		set.Spec.Type, set.Spec.Addons = v1.AddonSetCore, nil
		set.Spec.Priority = map[string]int32{"first": 1}[name]
		return set
	}
	first, second := core("first"), core("second")
	metav1.SetMetaDataAnnotation(&first.ObjectMeta, v1.AnnotationConfirmDeletion, first.Name)
	expect.Create(w.t, w.master, first)
	w.expectCopy("south", first, carriedBy(first))
	expect.Create(w.t, w.master, second)
	refused := w.expectSet(second, v1.ConditionReady, "False", v1.ReasonInvalid)
	if message := refused.Status.Conditions[0].Message; !strings.Contains(message, `AddonSet "first" is of type Core too and comes first`) {
		t.Errorf("Ready says %q", message)
	}
	w.steady(func() error {
		err := w.client("seed").Get(t.Context(), client.ObjectKeyFromObject(w.copyOf(second)), w.copyOf(second))
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("the seed has the second: %w", err)
		}
		return nil
	})
	expect.Delete(t, w.master, first)
	expect.Gone(t, w.client("seed"), w.copyOf(first))
	w.expectCopy("south", second, carriedBy(second))
	expect.Object(t, w.master, second.DeepCopy(), func(object *v1.AddonSet) error {
		if ready := meta.FindStatusCondition(object.Status.Conditions, v1.ConditionReady); ready == nil || ready.Reason == v1.ReasonInvalid {
			return fmt.Errorf("Ready is %+v", ready)
		}
		return nil
	})
}

// RS10, RS60: What is missing on the master takes no copy of a set, and no Secret that it needs, from a seed. Red when a set that
// is not there, or not there any more, counts as one that is being deleted.
func TestAMasterThatLostItsSetsRemovesNothing(t *testing.T) {
	w := newWorld(t)
	w.twoSeeds()
	stop := w.start()
	set := w.setOf("monitoring")
	set.Spec.Addons[0].PlatformSecretRef = &v1.PlatformSecretReference{Name: "shared"}
	w.platformSecret("shared", "a: 1")
	expect.Create(w.t, w.master, set)
	good := w.expectCopy("south", set, carriedBy(set)).DeepCopy()
	copied := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.catalogue, Name: "shared"}}
	expect.Object(t, w.client("seed"), copied, func(*corev1.Secret) error { return nil })
	stop()
	expect.Change(w.t, w.master, set, func(set *v1.AddonSet) { set.Finalizers = nil })
	expect.Delete(t, w.master, set)
	w.start()
	other := w.setOf("other")
	expect.Create(w.t, w.master, other)
	w.expectCopy("south", other, carriedBy(other))
	w.steady(func() error {
		found := w.copyOf(set)
		if err := w.client("seed").Get(t.Context(), client.ObjectKeyFromObject(found), found); err != nil {
			return err
		}
		if found.UID != good.UID || found.DeletionTimestamp != nil {
			return fmt.Errorf("the copy is another one, or deleted")
		}
		return w.client("seed").Get(t.Context(), client.ObjectKeyFromObject(copied), copied)
	})
}

func (w *world) platformSecret(name, values string) *corev1.Secret {
	w.t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.platform, Name: name, Labels: map[string]string{v1.LabelUse: v1.UseValues},
			Annotations: map[string]string{v1.AnnotationUsedBy: "*"},
		},
		Data: map[string][]byte{"values.yaml": []byte(values), "other": []byte("nobody asked")},
	}
	expect.Create(w.t, w.master, secret)
	return secret
}

// Red when seeds don't get values of the platform, get more of a Secret than sets name, lose what one set names since another
// does not any more, or keep what no set names any more.
func TestPlatformSecretsComeAndGo(t *testing.T) {
	w := newWorld(t)
	w.twoSeeds()
	w.start()
	set := w.setOf("monitoring")
	set.Spec.Addons[0].PlatformSecretRef = &v1.PlatformSecretReference{Name: "shared"}
	expect.Create(w.t, w.master, set)
	for seed := range places {
		w.seedSays(seed, set, "r1", done(1), done(1))
	}
	expect.Object(t, w.master, set.DeepCopy(), func(object *v1.AddonSet) error {
		for _, condition := range object.Status.Conditions {
			if strings.Contains(condition.Message, `Secret "shared": it does not exist`) {
				return expect.Condition(object, v1.ConditionReady, "False", v1.ReasonSeedsBehind)
			}
		}
		return fmt.Errorf("nobody is told: %v", object.Status.Conditions)
	})
	secret := w.platformSecret("shared", "a: 1")
	w.expectSet(set, v1.ConditionReady, "True", v1.ReasonComplete)
	copied := func(want string) func(*corev1.Secret) error {
		return func(found *corev1.Secret) error {
			if string(found.Data["values.yaml"]) != want || len(found.Data) != 1 || found.Labels[v1.LabelUse] != v1.UseValues {
				return fmt.Errorf("keys %d, labels %v", len(found.Data), found.Labels)
			}
			return nil
		}
	}
	there := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.catalogue, Name: "shared"}}
	for _, cluster := range places {
		expect.Object(t, w.client(cluster), there.DeepCopy(), copied("a: 1"))
	}
	expect.Change(w.t, w.master, secret, func(secret *corev1.Secret) { secret.Data["values.yaml"] = []byte("a: 2") })
	expect.Object(t, w.client("seed"), there.DeepCopy(), copied("a: 2"))
	other := w.setOf("other")
	other.Spec.Addons[0].PlatformSecretRef = &v1.PlatformSecretReference{Name: "shared"}
	expect.Create(w.t, w.master, other)
	w.expectCopy("south", other, carriedBy(other))
	editSet(w, set, func(set *v1.AddonSet) { set.Spec.Addons[0].PlatformSecretRef = nil })
	w.expectCopy("south", set, carriedBy(set))
	w.steady(func() error { // one set names it still
		return w.client("seed").Get(t.Context(), client.ObjectKeyFromObject(there), there.DeepCopy())
	})
	editSet(w, other, func(set *v1.AddonSet) { set.Spec.Addons[0].PlatformSecretRef = nil })
	expect.Gone(t, w.client("seed"), there.DeepCopy())
	expect.Gone(t, w.master, there.DeepCopy())
}

// Red when a set that names a key which is missing keeps another set from its values in the same Secret, or is not told of it.
func TestAMissingKeyKeepsNoOtherSetFromItsValues(t *testing.T) {
	w := newWorld(t)
	w.twoSeeds()
	w.start()
	good, wrong := w.setOf("good"), w.setOf("wrong")
	good.Spec.Addons[0].PlatformSecretRef = &v1.PlatformSecretReference{Name: "shared"}
	wrong.Spec.Addons[0].PlatformSecretRef = &v1.PlatformSecretReference{Name: "shared", Key: "missing.yaml"}
	w.platformSecret("shared", "a: 1")
	expect.Create(w.t, w.master, good)
	expect.Create(w.t, w.master, wrong)
	for _, cluster := range places {
		there := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.catalogue, Name: "shared"}}
		expect.Object(t, w.client(cluster), there, func(found *corev1.Secret) error {
			if string(found.Data["values.yaml"]) != "a: 1" || len(found.Data) != 1 {
				return fmt.Errorf("keys %d", len(found.Data))
			}
			return nil
		})
	}
	for seed := range places {
		w.seedSays(seed, wrong, "r1", done(1), done(1))
	}
	expect.Object(t, w.master, wrong.DeepCopy(), func(object *v1.AddonSet) error {
		for _, condition := range object.Status.Conditions {
			if strings.Contains(condition.Message, `it has none of the keys ["missing.yaml"]`) {
				return expect.Condition(object, v1.ConditionReady, "False", v1.ReasonSeedsBehind)
			}
		}
		return fmt.Errorf("nobody is told: %v", object.Status.Conditions)
	})
}

// Red when a seed that lies takes more than its share: the status grows, texts of it stand for other seeds, or others' counts go.
func TestASeedThatLiesHasItsShareOnly(t *testing.T) {
	w := newWorld(t)
	liar, kubeconfig := proxy(t, "seed")
	w.seed("north", kubeconfigOf("master"))
	w.seed("south", kubeconfig)
	expect.Create(w.t, w.master, w.catalogueOf("custom", map[string][]string{"web": {"1.0.0"}}))
	w.start()
	set := w.setOf("monitoring")
	expect.Create(w.t, w.master, set)
	w.seedSays("south", set, "r1", behind(1), behind(2))
	w.seedSays("north", set, "r1", failing(3, 1), behind(2))
	w.expectSet(set, v1.ConditionReady, "False", v1.ReasonHalted)
	giant := strings.Repeat("x", 4000)
	liar.lies(func(object map[string]any) {
		status, ok := object["status"].(map[string]any)
		if !ok {
			return
		}
		var clusters []any
		for i := range 10_000 {
			clusters = append(clusters, map[string]any{
				"name": fmt.Sprintf("%d%s", i, giant[:100]), "seed": "north", "state": "Failed", "message": giant[:500],
			})
		}
		status["clusters"] = clusters
		status["counts"] = map[string]any{"selected": math.MaxInt32, "current": math.MaxInt32, "failed": -5}
		status["pendingCount"] = math.MaxInt32
		status["conditions"] = []any{map[string]any{"type": "Ready", "status": "False", "reason": giant, "message": giant}}
	})
	w.seedSaysMore("south", set, func(status *v1.AddonSetStatus) { status.PendingCount = 3 }) // so that it is read
	found := expect.Object(t, w.master, set.DeepCopy(), func(object *v1.AddonSet) error {
		if len(object.Status.Clusters) == 0 {
			return fmt.Errorf("the lie was not read")
		}
		return nil
	})
	encoded, err := json.Marshal(found.Status)
	if err != nil || len(encoded) > 64<<10 || len(found.Status.Clusters) > 50 {
		t.Errorf("the status has %d bytes, %d clusters; error %v", len(encoded), len(found.Status.Clusters), err)
	}
	for _, row := range found.Status.Clusters {
		if row.Seed != "south" {
			t.Fatalf("it speaks of seed %q", row.Seed)
		}
	}
	if counts := found.Status.Counts; counts.Selected < 5 || counts.Selected > 200_000 || counts.Failed != 1 {
		t.Errorf("counts %+v", counts)
	}
	w.expectGate("north", set, "r1/0")
	w.expectSet(set, v1.ConditionReady, "False", v1.ReasonHalted)
	// 2^31 is no count at all: the row can't be read, which is told, and nothing else changes.
	liar.lies(func(object map[string]any) {
		if status, ok := object["status"].(map[string]any); ok {
			status["pendingCount"] = int64(1) << 31
		}
	})
	w.seedSaysMore("south", set, func(status *v1.AddonSetStatus) { status.PendingCount = 4 })
	expect.Object(t, w.master, set.DeepCopy(), func(object *v1.AddonSet) error {
		if object.Status.Seeds[1].Message == "" || !object.Status.Seeds[0].Synced {
			return fmt.Errorf("seeds %+v", object.Status.Seeds)
		}
		return nil
	})
	w.expectGate("north", set, "r1/0")
}

// Bar 6. Red when a seed that can't be reached holds all others up for ever, or for no time at all.
func TestASeedOutOfReachIsLeftOutPastTheDeadline(t *testing.T) {
	w := newWorld(t)
	cut, kubeconfig := proxy(t, "seed")
	w.seed("north", kubeconfigOf("master"))
	w.seed("south", kubeconfig)
	expect.Create(w.t, w.master, w.catalogueOf("custom", map[string][]string{"web": {"1.0.0"}}))
	w.start()
	set := w.setOf("monitoring")
	set.Spec.Rollout.ProgressDeadline = &metav1.Duration{Duration: 8 * time.Second}
	expect.Create(w.t, w.master, set)
	w.seedSays("south", set, "r1", behind(1), behind(2))
	w.seedSays("north", set, "r1", behind(1), behind(2))
	w.expectGate("north", set, "r1/1")
	cut.cut()
	lost := time.Now()
	w.seedSays("north", set, "r1", done(1), behind(2))
	w.expectGate("north", set, "r1/2")
	if waited := time.Since(lost); waited < 6*time.Second {
		t.Errorf("it was left out after %s", waited)
	}
	object := expect.Object(t, w.master, set.DeepCopy(), func(object *v1.AddonSet) error {
		if object.Status.Seeds[1].Message == "" || object.Status.Seeds[1].Synced {
			return fmt.Errorf("seeds %+v", object.Status.Seeds)
		}
		return nil
	})
	if ready := object.Status.Conditions[0]; !strings.Contains(ready.Message, "left out") || !strings.Contains(ready.Message, "south") {
		t.Errorf("Ready says %q", ready.Message)
	}
}

// Red when a seed is asked for what did not change: there are eight seconds without a call between two counts of installations.
func TestASeedIsNotAskedForWhatStays(t *testing.T) {
	w := newWorld(t)
	counted, kubeconfig := proxy(t, "seed")
	w.seed("south", kubeconfig)
	expect.Create(w.t, w.master, w.catalogueOf("custom", map[string][]string{"web": {"1.0.0"}}))
	w.start()
	set := w.setOf("monitoring")
	expect.Create(w.t, w.master, set)
	w.seedSays("south", set, "r1", done(1), done(2))
	w.expectSet(set, v1.ConditionReady, "True", v1.ReasonComplete)
	counted.awaitQuiet(t, 8*time.Second)
}
