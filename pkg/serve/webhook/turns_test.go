package webhook_test

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/pkg/serve/webhook"
	"github.com/trellis-addons/trellis/test/expect"
)

// AC91: While the webhooks are busy, the API server does as if they were down: one author keeps no other from writing. Red when it is not
// told to try again, or asks again by itself.
func TestABusyWebhookIsAsGoodAsNone(t *testing.T) {
	c := connect(t)
	var asked atomic.Int32
	began, end := make(chan struct{}, 2), make(chan struct{})
	busy := webhook.InTurn(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		began <- struct{}{}
		<-end
	}))
	server := httptest.NewTLSServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		asked.Add(1)
		busy.ServeHTTP(writer, request)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(end) })
	for range cap(began) {
		go func() {
			if answer, err := server.Client().Post(server.URL, "application/json", strings.NewReader("{}")); err == nil {
				_ = answer.Body.Close()
			}
		}()
	}
	for range cap(began) {
		<-began
	}
	const ignored, failed = "busy-ignored", "busy-failed"
	none, timeout := admissionregistrationv1.SideEffectClassNone, int32(30)
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "busy"}}
	for place, policy := range map[string]admissionregistrationv1.FailurePolicyType{
		ignored: admissionregistrationv1.Ignore, failed: admissionregistrationv1.Fail,
	} {
		create(t, c, namespace(place))
		configuration.Webhooks = append(configuration.Webhooks, admissionregistrationv1.ValidatingWebhook{
			Name: place + ".example.com", FailurePolicy: &policy, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			TimeoutSeconds: &timeout,
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL: &server.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": place}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{"CREATE"},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{"kubermatic.k8c.io"}, APIVersions: []string{"v1"}, Resources: []string{"addoncatalogues"},
				},
			}},
		})
	}
	create(t, c, configuration)
	made := func(place string) error {
		object := authored("tools", "1.0.0")
		object.Namespace = place
		return c.Create(t.Context(), object, client.DryRunAll)
	}
	expect.Eventually(t, expect.Patience, func() error { // the API server has to see the configuration first
		if err := made(failed); err == nil || !strings.Contains(err.Error(), "try again") {
			return fmt.Errorf("policy Fail: %w", err)
		}
		return nil
	})
	before := asked.Load()
	if err := made(ignored); err != nil || asked.Load()-before != 1 {
		t.Errorf("policy Ignore: asked %d times, %v", asked.Load()-before, err)
	}
}
