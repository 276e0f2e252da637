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

// testHijacked: an object that says it was merged, and was not, is to a seed as if it were not there, also past the policies; and a
// Core catalogue that should not have been is left in one step while it stands.
func testHijacked(t *testing.T, box *sandbox.Sandbox) {
	master, seed, user := box.Client(sandbox.Master), box.Client(cluster.Seed), box.Client(cluster.Name)
	s := &story{t: t, box: box, cluster: cluster}
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: sandbox.Namespace, Name: kubermaticv1.SecretCatalogueKey}}
	expect.Object(t, seed, key, func(*corev1.Secret) error { return nil })
	commit(t, box, "hijack", map[string]string{"loot.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: loot, namespace: kube-system}\n"})

	forged := catalogueOf("forged", gitVersion(box, "hijack", ""))
	forged.Namespace, forged.Labels = sandbox.CatalogueNamespace, map[string]string{kubermaticv1.LabelRole: kubermaticv1.RoleMerged}
	expect.Ensure(t, seed, forged)
	installation := newInstallation("forged", "forged")
	expect.Ensure(t, seed, installation)
	expect.HasCondition(t, seed, installation.DeepCopy(), expect.Is(kubermaticv1.ConditionCompatible, "False", kubermaticv1.ReasonAddonUnknown))
	dropInstallation(t, seed, installation)
	expect.NoError(t, client.IgnoreNotFound(seed.Delete(t.Context(), forged)))

	hijacker := catalogueOf("rbac", gitVersion(box, "hijack", ""))
	hijacker.Name, hijacker.Spec.Type, hijacker.Spec.Addons[0].Versions[0].Version = "mine", kubermaticv1.CatalogueCore, "99.0.0"
	hijacker.Annotations = map[string]string{kubermaticv1.AnnotationConfirmDeletion: "mine"}
	expect.Ensure(t, master, hijacker)
	s.has("rbac 99.0.0")
	loot := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "loot"}}
	expect.Object(t, user, loot.DeepCopy(), func(*corev1.ConfigMap) error { return nil })
	core := &kubermaticv1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: sandbox.Namespace, Name: "core"}}
	annotate := func(value string) {
		patch := client.RawPatch("application/merge-patch+json",
			fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, kubermaticv1.AnnotationLeaveVersions, value))
		expect.Patch(t, master, core, patch)
	}
	annotate(`"rbac=99.0.0"`)
	s.has("rbac 1.0.0")
	expect.Gone(t, user, loot)
	expect.Delete(t, master, hijacker)
	expect.Object(t, seed, &kubermaticv1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: sandbox.CatalogueNamespace, Name: "rbac"}},
		func(found *kubermaticv1.AddonCatalogue) error {
			if have := len(found.Spec.Addons[0].Versions); have != 1 {
				return fmt.Errorf("it has %d versions", have)
			}
			return nil
		})
	annotate("null")
	s.has("rbac 1.0.0")
}
