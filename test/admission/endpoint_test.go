package admission

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
)

// AC: Red when a user other than the seed's manager changes where clients send their tokens, when Helm can't create or label the ConfigMap
// without data, or when the policy is about other ConfigMaps.
func TestOnlyTheManagerSaysWhereTheQueryEndpointIs(t *testing.T) {
	const manager, writer = "system:serviceaccount:kubermatic:trellis-seed", "writer-of-configmaps"
	everywhere(t, func(t *testing.T, w *world) {
		for _, user := range []string{manager, writer} {
			expect.Create(t, w.admin, given.UserRights(user, rbacv1.PolicyRule{
				APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "update", "patch", "delete", "get"},
			})...)
		}
		where := func(name string, data map[string]string) *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespacePublic, Name: name}, Data: data}
		}
		elsewhere := map[string]string{kubermaticv1.QueryURL: "https://thief.example.com"}
		others := []client.Client{w.as(t, writer), w.admin}
		for _, other := range others {
			expect.Eventually(t, expect.Patience, func() error { // it follows roles and policies
				if err := other.Create(t.Context(), where(kubermaticv1.ConfigMapQuery, elsewhere), client.DryRunAll); !isDenied(err) {
					return fmt.Errorf("it may be created with data: %v", err)
				}
				return nil
			})
		}
		made := where(kubermaticv1.ConfigMapQuery, nil)
		expect.Create(t, w.admin, made)
		patch := func(as client.Client, text string) error {
			return as.Patch(t.Context(), made.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(text)))
		}
		const another = `{"data":{"url":"https://thief.example.com"}}`
		expect.Eventually(t, expect.Patience, func() error { return patch(w.as(t, manager), `{"data":{"url":"https://ours.example.com"}}`) })
		for _, other := range others {
			for _, text := range []string{another, `{"data":null}`, `{"immutable":true}`, `{"binaryData":{"ca.crt":"AAAA"}}`} {
				if err := patch(other, text); !isDenied(err) {
					t.Errorf("%s is not refused: %v", text, err)
				}
			}
			expect.NoError(t, patch(other, `{"metadata":{"labels":{"app.kubernetes.io/version":"2"}}}`))
			expect.NoError(t, other.Create(t.Context(), where("other", elsewhere), client.DryRunAll))
		}
		if err := w.as(t, manager).Create(t.Context(), where("other", elsewhere), client.DryRunAll); !isDenied(err) {
			t.Errorf("the manager writes another ConfigMap there: %v", err)
		}
		if err := w.as(t, manager).Delete(t.Context(), made, client.DryRunAll); !isDenied(err) {
			t.Errorf("the manager deletes it: %v", err)
		}
	})
}
