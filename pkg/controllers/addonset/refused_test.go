package addonset_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/standins"
	kit "github.com/trellis-addons/trellis/test/world"
)

// TestANamespaceThatRefusesStopsNoWave: One cluster's namespace refuses the set's writes, and one cluster moves at a
// time. The test fails when the others wait for it forever, when it is not reported as sick with the API server's
// message, and when it is not written once the refusal ends.
func TestANamespaceThatRefusesStopsNoWave(t *testing.T) {
	w := newWorld(t, 3, 3, standins.Rule{Act: standins.Act{Takes: 100 * time.Millisecond}})
	w.offers("web", "1.0.0")
	of := w.set("tools", func(of *v1.AddonSet) {
		of.Spec.Rollout.ProgressDeadline = &metav1.Duration{Duration: 3 * time.Second}
	})
	var policies []client.Object
	for _, name := range w.names[:2] {
		policies = append(policies, w.refusing(standins.NamespaceOf(name))...)
	}
	w.start()
	w.write(of)
	says := func(reason string, sick, installed int) {
		t.Helper()
		expect.Object(t, w.seed, copyOf(of), func(found *v1.AddonSet) error {
			reported := 0
			for _, row := range found.Status.Clusters {
				if row.State == v1.ClusterSick && row.Item == "web" && strings.Contains(row.Message, "no installations here") {
					reported++
				}
			}
			if at := w.at("1.0.0"); reported != sick || len(at) != installed {
				return fmt.Errorf("%d are told as sick, %q have it: %+v", reported, at, found.Status.Clusters)
			}
			if found.Status.Counts.Moving > 0 {
				return fmt.Errorf("%d are moving", found.Status.Counts.Moving)
			}
			return expect.Condition(found, v1.ConditionReady, map[bool]string{true: "True", false: "False"}[reason == v1.ReasonComplete], reason)
		})
	}
	says(v1.ReasonComplete, 2, 1)
	for _, policy := range policies {
		expect.Delete(t, w.seed, policy)
	}
	says(v1.ReasonComplete, 0, 3)
	if at := w.at("1.0.0"); !slices.Equal(at, w.names) {
		t.Errorf("%q have it", at)
	}
}

// TestARefusedRetryHoldsNoPlace: one cluster moves at a time, and a sick one, whose namespace refuses it, is tried
// again and again. The test fails when it holds the place until its next try, and another cluster waits for that.
func TestARefusedRetryHoldsNoPlace(t *testing.T) {
	w := newWorld(t, 2, 0, standins.Rule{Act: standins.Act{Takes: 100 * time.Millisecond}})
	w.offers("web", "1.0.0")
	late := map[string]string{"world": ""}
	w.clusters.Relabel(t, w.names[1], late)
	of := w.set("tools", atOnce, func(of *v1.AddonSet) {
		one := intstr.FromInt32(1)
		of.Spec.Rollout.MaxConcurrency, of.Spec.Rollout.ProgressDeadline = &one, &metav1.Duration{Duration: time.Second}
	})
	w.refusing(standins.NamespaceOf(w.names[0]))
	var refusals atomic.Int64
	w.start(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(request)
			if err == nil && request.Method == http.MethodPatch && strings.HasSuffix(request.URL.Path, "/addoninstallations/web") &&
				answer.StatusCode >= http.StatusBadRequest {
				refusals.Add(1)
			}
			return answer, err
		})
	})
	w.write(of)
	expect.Eventually(t, expect.Patience, func() error { // the wait between its reconciliations has grown above its deadline
		if found := refusals.Load(); found < 4 {
			return fmt.Errorf("it was refused %d times", found)
		}
		return nil
	})
	late["world"] = w.catalogue
	w.clusters.Relabel(t, w.names[1], late)
	w.says(of, v1.ReasonComplete, current(1), func(counts v1.ClusterCounts) bool { return counts.Sick == 1 })
	before := refusals.Load()
	expect.Eventually(t, expect.Patience, func() error { // it is still tried again
		if found := refusals.Load(); found < before+2 {
			return fmt.Errorf("it was refused %d times since", found-before)
		}
		return nil
	})
}

// TestANamespaceThatGoesIsAway: the namespaces of two existing clusters are being deleted, one before the set exists
// and one before a new version, and one cluster moves at a time. The test fails when one of them is written, or
// counts as refusing.
func TestANamespaceThatGoesIsAway(t *testing.T) {
	w := newWorld(t, 4, 4, standins.Rule{Act: standins.Act{Takes: 100 * time.Millisecond}})
	w.offers("web", "1.0.0")
	leave := func(name string) {
		t.Helper()
		expect.Delete(t, w.seed, kit.Namespace(standins.NamespaceOf(name)))
	}
	away := func(number int32) func(v1.ClusterCounts) bool {
		return func(counts v1.ClusterCounts) bool { return counts.Away == number }
	}
	leave(w.names[0])
	of := w.write(w.set("tools"))
	w.start()
	found := w.says(of, v1.ReasonComplete, current(3), away(1))
	if rows := found.Status.Clusters; len(rows) != 1 || rows[0].Name != w.names[0] || rows[0].Reason != v1.ReasonNamespaceTerminating {
		t.Errorf("the status lists %+v", rows)
	}
	leave(w.names[1])
	w.offers("web", "1.0.0", "1.1.0")
	w.says(of, v1.ReasonComplete, current(2), away(2))
	if at := w.at("1.1.0"); !slices.Equal(at, w.names[2:]) {
		t.Errorf("%q have the new version", at)
	}
	w.quiet()
}

// refusing makes a namespace refuse new AddonInstallations.
func (w *world) refusing(namespace string) []client.Object {
	w.t.Helper()
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "refusing." + namespace}}
	policy.Spec = admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule: admissionv1.Rule{
					APIGroups: []string{v1.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"addoninstallations"},
				},
			}}},
		},
		Validations: []admissionv1.Validation{{Expression: "false", Message: "no installations here"}},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: policy.Name}}
	binding.Spec.PolicyName, binding.Spec.ValidationActions = policy.Name, []admissionv1.ValidationAction{admissionv1.Deny}
	objects := []client.Object{binding, policy}
	expect.Create(w.t, w.seed, objects...)
	w.t.Cleanup(func() {
		for _, object := range objects {
			if err := w.seed.Delete(context.Background(), object); client.IgnoreNotFound(err) != nil {
				w.t.Error(err)
			}
		}
	})
	expect.Eventually(w.t, expect.Patience, func() error { // the API server applies the policy after a moment
		probe := &v1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "probe"}}
		probe.Spec = v1.AddonInstallationSpec{AddonRef: v1.AddonReference{Name: "probe"}, TargetNamespace: "probe"}
		if err := w.seed.Create(w.t.Context(), probe, client.DryRunAll); err == nil {
			return fmt.Errorf("the policy does not act")
		}
		return nil
	})
	return objects
}
