package addoninstallation_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
	"github.com/trellis-addons/trellis/test/expect"
	kit "github.com/trellis-addons/trellis/test/world"
)

// heldBy installs an add-on, with a user's finalizers on its installation, which is then deleted and has nothing of
// ours left.
func (w *world) heldBy(name string, labels map[string]string, how ...client.DeleteOption) *kubermaticv1.AddonInstallation {
	w.t.Helper()
	object := w.request(name, "left", "")
	w.expectInstalled(object, "1.0.0", "")
	w.edit(object, func(object *kubermaticv1.AddonInstallation) {
		object.Labels = labels
		object.Finalizers = append(object.Finalizers, finalizerOfTest, kubermaticv1.FinalizerCoreProtection)
	})
	expect.Delete(w.t, w.seed, object, how...)
	expect.Object(w.t, w.seed, object, func(found *kubermaticv1.AddonInstallation) error {
		if slices.Contains(found.Finalizers, kubermaticv1.FinalizerCleanupInstallation) {
			return fmt.Errorf("%s is not let go by us: %v", found.Name, found.Finalizers)
		}
		return nil
	})
	return object
}

// stayHeld fails the test unless these finalizers hold the installations, before and after another reconciliation.
func (w *world) stayHeld(objects ...*kubermaticv1.AddonInstallation) {
	w.t.Helper()
	w.manager.Stays(func() error {
		for _, object := range objects {
			if err := w.seed.Get(w.t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				return err
			}
			if len(installation.Foreign(object)) != 2 {
				return fmt.Errorf("%s has finalizers %v", object.Name, object.Finalizers)
			}
		}
		return nil
	}, "addoninstallation")
}

// leftBehind waits for the only event about the ended object, which names an installation and its finalizers.
func (w *world) leftBehind(ended client.Object, held *kubermaticv1.AddonInstallation) {
	w.t.Helper()
	expect.Event(w.t, w.seed, ended, kubermaticv1.EventLeftBehind, held.Namespace+"/"+held.Name, finalizerOfTest, kubermaticv1.FinalizerCoreProtection)
	reported := slices.DeleteFunc(expect.Events(w.t, w.seed, ended), func(event eventsv1.Event) bool {
		return event.Reason != kubermaticv1.EventLeftBehind || event.Regarding.UID != ended.GetUID()
	})
	if len(reported) != 1 {
		w.t.Errorf("the events are %+v", reported)
	}
}

// TestFinalizersOfOthersDoNotHoldTheEndOfAClusterForEver fails if a user's finalizer on an installation holds its
// Cluster for longer than allowed, if it is removed earlier, or while neither a Cluster nor a set ends, and if that is
// not reported on the Cluster. Kubernetes removes its own finalizers.
func TestFinalizersOfOthersDoNotHoldTheEndOfAClusterForEver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.clock = kit.RunningClock(t)
	w.offerEnds()
	w.start()
	early := w.heldBy("early", nil, client.PropagationPolicy(metav1.DeletePropagationForeground))
	w.clock.Step(installation.HeldAtMost / 2)
	w.stayHeld(early) // for its users it is
	w.clock.Step(installation.HeldAtMost)
	w.stayHeld(early)

	w.endCluster(w.cluster)
	w.manager.Settle("addoninstallation")
	expect.Gone(t, w.seed, early)
	w.leftBehind(w.cluster, early)
}

// TestAClusterWaitsForFinalizersOfOthersAWhile fails if a foreign finalizer gets no time while its Cluster ends.
func TestAClusterWaitsForFinalizersOfOthersAWhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.clock = kit.RunningClock(t)
	w.offerEnds()
	w.start()
	held := w.heldBy("held", nil)
	w.endCluster(w.cluster)
	w.stayHeld(held)
	w.clock.Step(installation.HeldAtMost - 10*time.Minute)
	w.stayHeld(held)
	w.clock.Step(11 * time.Minute)
	w.manager.Settle("addoninstallation")
	expect.Gone(t, w.seed, held)
	w.leftBehind(w.cluster, held)
}

// TestFinalizersOfOthersDoNotHoldTheEndOfASetForEver fails if a user's finalizer holds a set whose deletion was
// confirmed, if it is removed while the set stays, or because of another set's end, and if that is not reported on the
// copy.
func TestFinalizersOfOthersDoNotHoldTheEndOfASetForEver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.clock = kit.RunningClock(t)
	w.offerEnds()
	set := &kubermaticv1.AddonSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.catalogue, Name: "tools", Labels: map[string]string{kubermaticv1.LabelRole: kubermaticv1.RoleCopy},
			Finalizers: []string{kubermaticv1.FinalizerCleanupSet},
		},
		Spec: kubermaticv1.AddonSetSpec{
			Type: kubermaticv1.AddonSetCustom, ClusterSelector: &metav1.LabelSelector{},
			Addons: []kubermaticv1.AddonSetItem{{Name: "web", AddonRef: kubermaticv1.AddonReference{Name: "left"}, TargetNamespace: "web"}},
		},
	}
	w.create(set)
	t.Cleanup(func() {
		_ = w.seed.Patch(context.WithoutCancel(t.Context()), set, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
	})
	w.start()
	held, other := w.heldBy("held", map[string]string{kubermaticv1.LabelSet: "tools"}), w.heldBy("other", map[string]string{kubermaticv1.LabelSet: "another"})
	w.clock.Step(2 * installation.HeldAtMost)
	w.stayHeld(held, other)
	w.delete(set)
	w.stayHeld(held, other) // the set stays, unconfirmed
	expect.Change(t, w.seed, set, func(set *kubermaticv1.AddonSet) {
		metav1.SetMetaDataAnnotation(&set.ObjectMeta, kubermaticv1.AnnotationConfirmDeletion, set.Name)
	})
	expect.Eventually(t, expect.Patience, func() error { // the cache may have the previous state of the set
		w.manager.Settle("addoninstallation")
		if err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(held), held); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("it is held by %v", held.Finalizers)
		}
		return nil
	})
	w.leftBehind(set, held)
	w.stayHeld(other)
	w.edit(other, func(object *kubermaticv1.AddonInstallation) { object.Finalizers = nil })
}
