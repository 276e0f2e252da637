package addoninstallation_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// withSecretName gives an access the name of its Secret.
func withSecretName(access kubermaticv1.Access, secretName string) kubermaticv1.Access {
	access.SecretName = secretName
	return access
}

// TestASecretHasTheNameThatItsVersionGives fails when templates see another name than the Secret has, when an upgrade
// leaves the previous Secret in the user cluster or deletes the one in use, when a version that waits renames the Secret
// of the installed one, and when a removal leaves one.
func TestASecretHasTheNameThatItsVersionGives(t *testing.T) {
	t.Parallel()
	w := agentWorld(t)
	const theirs = "$(installation)-hub-kubeconfig"
	w.offer("agent", kubermaticv1.CatalogueCustom,
		w.agent("1.0.0", tokenFor("hub", reading("configmaps"))),
		w.agent("2.0.0", withSecretName(tokenFor("hub", reading("configmaps")), theirs)),
		w.agent("3.0.0", withSecretName(tokenFor("hub", reading("configmaps")), "waiting"), tokenFor("events", reading("events"))),
		w.agent("4.0.0", withSecretName(tokenFor("hub-kubeconfig", reading("configmaps")), "hub")))
	w.start()
	object := w.install("agent", "1.0.0")
	w.ready(object)
	expectHub := func(name string) {
		t.Helper()
		settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: object.Spec.TargetNamespace, Name: "settings"}}
		expect.Object(t, w.seed, settings, func(settings *corev1.ConfigMap) error {
			if got, want := settings.Data["hub"], name+" of "+w.namespace; got != want {
				return fmt.Errorf("templates see %q, not %q", got, want)
			}
			return nil
		})
		if err := w.bearerOf(object, name).List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(w.namespace)); err != nil {
			t.Errorf("the credential in Secret %s: %v", name, err)
		}
	}
	secret := func(name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: object.Spec.TargetNamespace, Name: name}}
	}
	expectHub("agent-hub")
	w.want(object, "2.0.0")
	w.expectApplied(object, "2.0.0")
	expectHub("agent-hub-kubeconfig")
	expect.Gone(t, w.seed, secret("agent-hub"))

	w.want(object, "3.0.0")
	w.expectAccess(object, "False", kubermaticv1.ReasonRightsRefused, `access "events"`)
	for range 3 { // reconciliations that maintain
		w.afterAnother(object)
	}
	if w.has(&corev1.Secret{}, object.Spec.TargetNamespace, "waiting") {
		t.Error("the Secret of a version that is not installed exists")
	}
	expectHub("agent-hub-kubeconfig")
	if shown := object.Status.Access[0].Secret; shown != "agent-hub-kubeconfig" {
		t.Errorf("the status names Secret %q", shown)
	}

	w.want(object, "4.0.0") // its default name would be the present one
	w.expectApplied(object, "4.0.0")
	expectHub("hub")
	expect.Gone(t, w.seed, secret("agent-hub-kubeconfig"))
	w.delete(object)
	expect.Gone(t, w.seed, object)
	expect.Gone(t, w.seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: object.Spec.TargetNamespace}})
	w.expectNothingMade(object)
}

// TestTwoCredentialsOfOneSecretAreRefused fails when two credentials write one Secret, again and again, since their
// names are equal for one installation only.
func TestTwoCredentialsOfOneSecretAreRefused(t *testing.T) {
	t.Parallel()
	w := agentWorld(t)
	w.offer("agent", kubermaticv1.CatalogueCustom,
		w.agent("1.0.0", tokenFor("hub", reading("configmaps")), withSecretName(tokenFor("other", reading("configmaps")), "agent-hub")))
	w.start()
	object := w.install("agent", "")
	w.expectSummary(object, "False", kubermaticv1.ReasonRenderFailed, `"agent-hub"`, "secretName")
	w.expectNothingMade(object)
}
