package manager

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// TestUserClustersHaveNoSeries: a manager asks its own API server and that of a user cluster, with client-go. Red when the metric of
// client-go gets series for the user cluster, and when it no longer has those of the manager's own.
func TestUserClustersHaveNoSeries(t *testing.T) {
	asks := func() *rest.Config {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"gitVersion":"v1.36.0"}`))
		}))
		t.Cleanup(server.Close)
		return &rest.Config{Host: server.URL}
	}
	own, others := asks(), asks()
	if err := countOwnRequests(own); err != nil {
		t.Fatal(err)
	}
	for _, config := range []*rest.Config{own, others} {
		client, err := discovery.NewDiscoveryClientForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.ServerVersion(); err != nil {
			t.Fatal(err)
		}
	}
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	hosts := map[string]bool{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if family.GetName() == "rest_client_requests_total" && label.GetName() == "host" {
					hosts[label.GetValue()] = true
				}
			}
		}
	}
	hostOf := func(config *rest.Config) string { return strings.TrimPrefix(config.Host, "http://") }
	if !hosts[hostOf(own)] || hosts[hostOf(others)] {
		t.Errorf("requests are counted for %v, want %s and not %s", hosts, hostOf(own), hostOf(others))
	}
}
