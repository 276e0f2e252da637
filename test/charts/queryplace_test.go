package charts

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Red when a seed without a query endpoint lets other users say where clients send their tokens, or when a further manager refuses what
// the first one writes.
func TestOtherUsersNeverSayWhereTheQueryEndpointIs(t *testing.T) {
	for _, test := range []struct {
		why    string
		values map[string]any
		want   bool
	}{
		{"defaults", nil, true},
		{"without queries", map[string]any{"query": map[string]any{"enabled": false}}, true},
		{"a further manager", map[string]any{"workerName": "lab"}, false},
	} {
		_, objects := render(t, rendering{chart: "trellis-seed", why: test.why, values: test.values})
		for _, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
			got := slices.ContainsFunc(objects, func(one *unstructured.Unstructured) bool {
				return one.GetKind() == kind && one.GetName() == "kubermatic.trellis-seed.addon-query"
			})
			if got != test.want {
				t.Errorf("%s: %s is there: %t, want %t", test.why, kind, got, test.want)
			}
		}
	}
}
