package coreaddon_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/controllers/coreaddon"
	"github.com/trellis-addons/trellis/test/expect"
)

// TestAnyValuesSettle: For any values of an item, the API server's form of them counts as applied: otherwise every
// reconciliation would write, and none would report.
func TestAnyValuesSettle(t *testing.T) {
	w := newWorld(t)
	of := w.cluster("settled")
	w.merged(v1.CatalogueCustom, "prometheus")
	w.start()
	for i, values := range []string{
		"{}", "{a: null}", "{a: {b: null, c: {}}}", "{a: [null, {b: null}], c: []}", "{a: 1.0, b: 1e3, c: -0.0, d: 1.5}",
		"{a: 9007199254740993, b: 18446744073709551615, c: -9223372036854775808}", `{a: "", "a.b": 2, "k:x": 3}`,
		`{"": 1}`,
	} {
		name := fmt.Sprintf("odd-%d", i)
		w.listed(fmt.Sprintf("[{name: %s, addonRef: {name: prometheus}, targetNamespace: odd, values: %s}]", name, values))
		made := w.exists(of, name)
		expect.Object(t, w.seed, availableOf(of), func(found *v1.AddonCatalogue) error {
			for _, condition := range found.Status.Conditions {
				if strings.Contains(condition.Message, name+": ") {
					return nil
				}
			}
			return fmt.Errorf("values %s became %s and are not reported: %+v", values, made.Spec.Values.Raw, found.Status.Conditions)
		})
	}
}

// TestAListThatIsGoneTakesNothingOffRules: An item that is in force through a deleted ConfigMap is not replaced by
// the rule of the same add-on.
func TestAListThatIsGoneTakesNothingOffRules(t *testing.T) {
	w := newWorld(t)
	of := w.cluster("listed")
	w.merged(v1.CatalogueCore, "kube-proxy")
	w.listed("[{name: kube-proxy, addonRef: {name: kube-proxy, version: 1.0.0}, targetNamespace: kube-system, values: {mode: ipvs}}]")
	stop := w.start()
	w.exists(of, "kube-proxy")
	w.reports(of, "4 total, 0 ready, 0 failing, 3 missing", "False CoreAddonsNotReady")
	stop()
	w.remove(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: coreaddon.ListName}})
	w.start()
	w.steady(func() error {
		found := w.exists(of, "kube-proxy")
		if found.Spec.Values == nil || string(found.Spec.Values.Raw) != `{"mode":"ipvs"}` || found.Spec.AddonRef.Version != "1.0.0" {
			return fmt.Errorf("it is %+v", found.Spec)
		}
		return nil
	})
}

// TestAnInstallationThatIsChangedOnItsWayIsReported: An installation that admission changes on its way into the store, so
// that no write corrects it, is reported and not retried at once.
func TestAnInstallationThatIsChangedOnItsWayIsReported(t *testing.T) {
	w := newWorld(t)
	of := w.cluster("changed")
	w.merged(v1.CatalogueCore, "kube-proxy")
	policy, binding := pausing(of.Status.NamespaceName)
	expect.Create(w.t, w.seed, policy, binding)
	t.Cleanup(func() { // allow writes to installations again
		for _, object := range []client.Object{binding, policy} {
			if err := w.seed.Delete(context.Background(), object); err != nil {
				t.Error(err)
			}
		}
	})
	expect.Eventually(t, expect.Patience, func() error { // the API server applies the policy after a moment
		probe := installationOf(of, "probe")
		probe.Spec = v1.AddonInstallationSpec{AddonRef: v1.AddonReference{Name: "probe"}, TargetNamespace: "probe"}
		if err := w.seed.Create(t.Context(), probe, client.DryRunAll); err != nil || !probe.Spec.Paused {
			return fmt.Errorf("the policy does not act: %w", err)
		}
		return nil
	})
	w.start()
	w.reports(of, "4 total, 0 ready, 0 failing, 3 missing", "False Failed")
}

// pausing is a policy that pauses every AddonInstallation that is written in a namespace.
func pausing(namespace string) (*admissionv1.MutatingAdmissionPolicy, *admissionv1.MutatingAdmissionPolicyBinding) {
	policy := &admissionv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "pausing." + namespace}}
	policy.Spec = admissionv1.MutatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
				Rule: admissionv1.Rule{
					APIGroups: []string{v1.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"addoninstallations"},
				},
			}}},
		},
		Mutations: []admissionv1.Mutation{{
			PatchType:          admissionv1.PatchTypeApplyConfiguration,
			ApplyConfiguration: &admissionv1.ApplyConfiguration{Expression: "Object{spec: Object.spec{paused: true}}"},
		}},
		ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
	}
	binding := &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: policy.Name}}
	binding.Spec.PolicyName = policy.Name
	return policy, binding
}
