package survey

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-addons/trellis/pkg/clusters/calls"
)

// TestAnUnavailableAPIServiceSaysTheAnswer fails if the answer of an APIService's server is cut off after the addresses
// that the aggregator names before it.
func TestAnUnavailableAPIServiceSaysTheAnswer(t *testing.T) {
	address := "https://10.111.222.33:443/apis/metrics.k8s.io/v1beta1"
	said := "failing or missing response from " + address + ": bad status from " + address + ": 404"
	service := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"service": map[string]any{"name": "metrics-server"}},
		"status": map[string]any{"conditions": []any{map[string]any{
			"type": "Available", "status": "False", "reason": "FailedDiscoveryCheck", "message": strings.Repeat(address+" ", 3) + said,
		}}},
	}}
	_, message := availability(service)
	if shown := calls.CutText(message); !strings.HasSuffix(shown, ": 404") || !strings.Contains(shown, "FailedDiscoveryCheck") {
		t.Errorf("it says %q", shown)
	}
}
