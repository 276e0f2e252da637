package distributor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// refuseCore has the seed refuse that Core catalogues are created, until it is told to let them.
func (w *world) refuseCore(words string) (let func()) {
	w.t.Helper()
	seed := w.client("seed")
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "refusing." + w.catalogue}}
	policy.Spec = admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.catalogue}},
			ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule: admissionv1.Rule{
					APIGroups: []string{v1.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"addoncatalogues"},
				},
			}}},
		},
		Validations: []admissionv1.Validation{{
			Expression: "object.spec.type != 'Core'", Message: words, Reason: new(metav1.StatusReasonForbidden),
		}},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: policy.Name}}
	binding.Spec.PolicyName, binding.Spec.ValidationActions = policy.Name, []admissionv1.ValidationAction{admissionv1.Deny}
	expect.Create(w.t, seed, binding, policy)
	let = func() {
		if err := errors.Join(client.IgnoreNotFound(seed.Delete(context.Background(), binding)), client.IgnoreNotFound(seed.Delete(context.Background(), policy))); err != nil {
			w.t.Error(err)
		}
	}
	w.t.Cleanup(let)
	expect.Eventually(w.t, expect.Patience, func() error { // the API server knows the policy after a moment
		probe := w.merged("probe")
		probe.Spec = v1.AddonCatalogueSpec{Type: v1.CatalogueCore, Addons: []v1.Addon{addonOf("probe", "1.0.0")}}
		if err := seed.Create(w.t.Context(), probe, client.DryRunAll); err == nil || !strings.Contains(err.Error(), words) {
			return fmt.Errorf("the policy does not act: %v", err)
		}
		return nil
	})
	return let
}

// TestWhatASeedRefusesToCreateIsNotDeleted: an add-on becomes Core, which is another object on the seed, and the seed's policies refuse that
// one. Red when the present one is deleted first.
func TestWhatASeedRefusesToCreateIsNotDeleted(t *testing.T) {
	w := newWorld(t)
	w.seed("remote", kubeconfigOf("seed"))
	w.start()
	custom := w.catalogueOf("custom", map[string][]string{"web": {"1.0.0"}})
	expect.Create(w.t, w.master, custom)
	before := w.expectVersions("seed", "web", "1.0.0")
	let := w.refuseCore("no Core add-ons here")
	core := w.catalogueOf("core", map[string][]string{"web": {"2.0.0"}})
	core.Spec.Type = v1.CatalogueCore
	expect.Create(w.t, w.master, core)
	expect.Object(t, w.master, core, func(object *v1.AddonCatalogue) error {
		if rows := object.Status.Seeds; len(rows) != 1 || rows[0].Synced || !strings.Contains(rows[0].Message, `AddonCatalogue "web": the seed forbids it`) {
			return fmt.Errorf("rows %+v", rows)
		}
		return nil
	})
	if now := w.expectVersions("seed", "web", "1.0.0"); now.UID != before.UID {
		t.Error("web was made again")
	}
	let()
	w.expectVersions("seed", "web", "2.0.0")
}
