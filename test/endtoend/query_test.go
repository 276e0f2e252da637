package endtoend_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/sandbox"
)

// testQuery asks the seed manager's endpoint, with the kubeconfig that the sandbox writes, and compares what a cluster is said
// to be offered with what it is offered.
func testQuery(t *testing.T, box *sandbox.Sandbox) {
	config, err := clientcmd.BuildConfigFromFlags("", box.QueryKubeconfig(cluster.Seed))
	expect.NoError(t, err)
	path := "/api/v1/namespaces/" + cluster.Namespace() + "/addons"
	available := &kubermaticv1.AddonCatalogue{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace(), Name: kubermaticv1.AvailableCatalogue},
	}
	expect.Eventually(t, expect.Patience, func() error {
		status, body := query(t, config, path)
		if status != http.StatusOK {
			return fmt.Errorf("got %d %s", status, body)
		}
		var listing catalogue.Listing
		if err := json.Unmarshal(body, &listing); err != nil {
			return err
		}
		if err := box.Client(cluster.Seed).Get(t.Context(), client.ObjectKeyFromObject(available), available); err != nil {
			return err
		}
		var listed []string
		for _, addon := range listing.Addons {
			for _, version := range addon.Versions {
				listed = append(listed, addon.Name+" "+version.Version)
				if version.Catalogue == "" {
					return fmt.Errorf("%s %s has no origin", addon.Name, version.Version)
				}
			}
		}
		if offered := sandbox.Offered(available); len(listed) == 0 || strings.Join(listed, ", ") != strings.Join(offered, ", ") {
			return fmt.Errorf("the endpoint lists %q, and the cluster is offered %q", listed, offered)
		}
		return nil
	})
	stranger := rest.CopyConfig(config)
	stranger.BearerToken = "wrong"
	if status, body := query(t, stranger, path); status != http.StatusUnauthorized {
		t.Errorf("a wrong token: got %d %s", status, body)
	}
	if status, body := query(t, config, "/api/v1/namespaces/kube-system/addons"); status != http.StatusNotFound {
		t.Errorf("a namespace that is no cluster's: got %d %s", status, body)
	}
}

// testMetrics: the master's manager asks who asks for its metrics, and whether they may have them.
func testMetrics(t *testing.T, box *sandbox.Sandbox) {
	nobody := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: sandbox.Namespace, Name: "default"}}
	token := expect.Token(t, box.Client(sandbox.Master), nobody)
	host := strings.TrimSuffix(strings.Replace(box.Manager(sandbox.Master).MetricsURL(), "http:", "https:", 1), "/metrics")
	config := &rest.Config{Host: host, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	if status, body := query(t, config, "/metrics"); status != http.StatusForbidden {
		t.Errorf("who has no right to metrics got %d %.200s", status, body)
	}
}

func query(t *testing.T, config *rest.Config, path string) (int, []byte) {
	t.Helper()
	browser, err := rest.HTTPClientFor(config)
	expect.NoError(t, err)
	defer browser.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+path, http.NoBody)
	expect.NoError(t, err)
	answer, err := browser.Do(request)
	expect.NoError(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	expect.NoError(t, err)
	return answer.StatusCode, body
}
