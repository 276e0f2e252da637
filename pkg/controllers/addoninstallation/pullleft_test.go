package addoninstallation_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/install/pullsecret"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
)

// expectCopies waits until the record of copies meets a condition.
func (w *world) expectCopies(holds func(pullsecret.Copies) error) {
	w.t.Helper()
	expect.Object(w.t, w.seed, w.pullRecord(), func(found *corev1.ConfigMap) error {
		var known pullsecret.Copies
		if err := json.Unmarshal([]byte(found.Data["copies.json"]), &known); err != nil {
			return err
		}
		if err := holds(known); err != nil {
			return fmt.Errorf("%w: %s", err, found.Data["copies.json"])
		}
		return nil
	})
}

// isLeft returns an error unless no installation needs a copy and it is still on record.
func isLeft(known pullsecret.Copies) error {
	if len(known.Uses) > 0 || len(known.All) != 1 || !known.All[0].Left {
		return errors.New("the copy is not one that was left")
	}
	return nil
}

// TestOrphansLeaveTheRecordOfCopies: the copy of an installation that was removed with Orphan stays unchanged, and is
// used again by an installation that returns. It fails if the installation stays on record, or if the copy is deleted,
// or counts as foreign afterwards.
func TestOrphansLeaveTheRecordOfCopies(t *testing.T) {
	t.Parallel()
	w, original := pullWorld(t)
	w.start()
	first := w.install("first", "")
	w.ready(first)
	target := first.Spec.TargetNamespace
	before := w.expectCopy(target, "first-word")
	w.edit(first, func(first *kubermaticv1.AddonInstallation) { first.Spec.DeletionPolicy = kubermaticv1.DeletionOrphan })
	w.delete(first)
	expect.Gone(t, w.seed, first)
	w.expectCopies(isLeft)

	w.updateOriginal(original, func() { original.Data[corev1.DockerConfigJsonKey] = pullLogin("second-word") })
	second := w.install("second", "")
	w.ready(second)
	w.expectCopy(second.Spec.TargetNamespace, "second-word")
	if left := w.expectCopy(target, "first-word"); left.ResourceVersion != before.ResourceVersion {
		t.Error("the copy that was left was written")
	}

	again := given.Installation(w.namespace, "again", "first", target, func(made *kubermaticv1.AddonInstallation) {
		made.Annotations = map[string]string{kubermaticv1.AnnotationAdopt: "true"}
	})
	w.create(again)
	w.ready(again)
	if taken := w.expectCopy(target, "second-word"); taken.UID != before.UID {
		t.Error("the copy that was left was made anew")
	}
	w.delete(again)
	w.delete(second)
	expect.Gone(t, w.seed, again)
	expect.Gone(t, w.seed, second)
	expect.Gone(t, w.seed, w.copyIn(target))
	expect.Gone(t, w.seed, w.pullRecord())
}

// TestCopiesGoWithTheFlag: a manager that is started without the name of the pull Secret removes the existing copies.
// It fails if it does not look for the copies that it made before.
func TestCopiesGoWithTheFlag(t *testing.T) {
	t.Parallel()
	w, _ := pullWorld(t)
	stop := w.startUntil()
	first := w.install("first", "")
	w.ready(first)
	copied := w.copyIn(first.Spec.TargetNamespace)
	w.expectCopy(copied.Namespace, "first-word")
	stop()
	w.pull = ""
	w.start()
	expect.Gone(t, w.seed, copied)
	w.delete(first)
	expect.Gone(t, w.seed, first)
	expect.Gone(t, w.seed, w.pullRecord())
}

// TestAClusterThatGoesHasNoUsesOfCopies: an installation that is deleted with its Cluster no longer needs a copy, and
// is not on record, like an orphaned one. It fails if its use stays on record, or if the user cluster is called.
func TestAClusterThatGoesHasNoUsesOfCopies(t *testing.T) {
	t.Parallel()
	w, _ := pullWorld(t)
	w.start()
	first := w.install("first", "")
	w.ready(first)
	w.expectCopies(func(known pullsecret.Copies) error {
		if len(known.Uses) != 1 || len(known.All) != 1 || known.All[0].Left {
			return errors.New("the copy is not one that is needed")
		}
		return nil
	})
	w.cluster.Finalizers = []string{"example.com/hold"}
	expect.Update(t, w.seed, w.cluster)
	w.delete(w.cluster)
	w.delete(first)
	expect.Gone(t, w.seed, first)
	w.expectCopies(isLeft)
	w.expectCopy(first.Spec.TargetNamespace, "first-word")
}
