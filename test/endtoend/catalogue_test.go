package endtoend_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/sandbox"
)

// testFollowsTheCatalogue: an installation by range follows new versions, prunes what they no longer have, and loses
// nothing when its version, or the whole add-on, is withdrawn. It turns red when RecordApplied forgets what is superseded
// and when a missing catalogue entry counts as a wish to remove.
func testFollowsTheCatalogue(t *testing.T, box *sandbox.Sandbox) {
	master, seed, user := box.Client(sandbox.Master), box.Client(cluster.Seed), box.Client(cluster.Name)
	commit(t, box, "moving", map[string]string{
		"v1/settings.yaml": settingsManifest("one"), "v1/extra.yaml": configMapManifest("extra"),
		"v2/settings.yaml": settingsManifest("two"),
	})
	first := gitVersion(box, "moving", "v1")
	catalogue := catalogueOf("moving", first)
	expect.Ensure(t, master, catalogue)
	installation := newInstallation("moving", "moving")
	installation.Spec.AddonRef.Version = "1.x"
	expect.Ensure(t, seed, installation)
	ready(t, seed, installation)
	extra := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "moving", Name: "extra"}}
	expect.Object(t, user, extra.DeepCopy(), func(*corev1.ConfigMap) error { return nil })

	second := gitVersion(box, "moving", "v2")
	second.Version = "1.1.0"
	setVersions(t, master, catalogue, first, second)
	expectVersion(t, seed, installation, "1.1.0")
	expect.Gone(t, user, extra)
	if got := settings(t, user, "moving").Data["value"]; got != "two" {
		t.Errorf("the new version's value is %q", got)
	}

	before := settings(t, user, "moving")
	expect.Delete(t, master, catalogue)
	expect.HasCondition(t, seed, installation.DeepCopy(), expect.Is(kubermaticv1.ConditionCompatible, "False", kubermaticv1.ReasonWithdrawn))
	if after := settings(t, user, "moving"); after.ResourceVersion != before.ResourceVersion {
		t.Error("withdrawing the add-on changed what is installed")
	}
	repaired(t, user)
	dropInstallation(t, seed, installation)
	expect.Gone(t, user, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "moving"}})
}

// repaired: what is withdrawn is still looked after, from the record alone.
func repaired(t *testing.T, user client.Client) {
	t.Helper()
	edited := settings(t, user, "moving")
	edited.Data["value"] = "edited by hand"
	expect.Update(t, user, edited)
	expect.Object(t, user, edited, func(found *corev1.ConfigMap) error {
		if got := found.Data["value"]; got != "two" {
			return fmt.Errorf("the value is %q", got)
		}
		return nil
	})
}

func expectVersion(t *testing.T, seed client.Client, installation *kubermaticv1.AddonInstallation, version string) {
	t.Helper()
	expect.Object(t, seed, installation.DeepCopy(), func(found *kubermaticv1.AddonInstallation) error {
		if found.Status.LastApplied == nil || found.Status.LastApplied.Version != version {
			return fmt.Errorf("last applied is %+v, want version %s", found.Status.LastApplied, version)
		}
		return expect.Condition(found, kubermaticv1.ConditionReady, "True", kubermaticv1.ReasonReady)
	})
}

func dropInstallation(t *testing.T, seed client.Client, installation *kubermaticv1.AddonInstallation) {
	t.Helper()
	expect.Delete(t, seed, installation)
	expect.Gone(t, seed, installation)
}

// dropSet removes a set with what it installed.
func dropSet(t *testing.T, master client.Client, set *kubermaticv1.AddonSet) {
	t.Helper()
	expect.Annotate(t, master, set, kubermaticv1.AnnotationConfirmDeletion, set.Name)
	expect.Delete(t, master, set)
	expect.Gone(t, master, set)
}

func configMapManifest(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n"
}
