package charts

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
)

// address is where a manager of these tests serves its webhooks.
// expectCertificate waits until a manager has made its certificate and the API server was told the authority.
func expectCertificate(t *testing.T, c client.Client, chart string) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: chart + "-webhook"}}
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: namespace + "." + chart}}
	expect.Object(t, c, configuration, func(found *admissionregistrationv1.ValidatingWebhookConfiguration) error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
			return err
		}
		for _, webhook := range found.Webhooks {
			if len(webhook.ClientConfig.CABundle) == 0 || !bytes.Equal(webhook.ClientConfig.CABundle, secret.Data["ca.crt"]) {
				return fmt.Errorf("webhook %q has not the authority of Secret %q", webhook.Name, secret.Name)
			}
		}
		return nil
	})
}

const circleMistake = `AddonSet "kubermatic/circle": spec.addons: dependsOn has a cycle`

// mistakes are objects that the schemas let through and the webhooks refuse, with what the refusal says.
func mistakes() map[string]client.Object {
	twice := given.Catalogue(namespace, "twice", given.Addon(
		"web", kubermaticv1.AddonVersion{Version: "1.0.0"}, kubermaticv1.AddonVersion{Version: "v1.0"},
	))
	wrong := given.Installation("cluster-one", "wrong", "hello", "hello", given.Values(`{"replicas":"many"}`))
	circle := given.Set(namespace, "circle", "web")
	circle.Spec.Addons[0].DependsOn = []kubermaticv1.AddonName{"web"}
	return map[string]client.Object{
		circleMistake: circle,
		`AddonCatalogue "kubermatic/twice": addon "web" version "v1.0": version: "1.0.0" is the same version`:                              twice,
		`AddonInstallation "cluster-one/wrong": spec.values, for version "1.0.0" of add-on "hello": field "Replicas" (replicas) must be a`: wrong,
	}
}

// expectMistakesRefused holds that the webhooks are asked.
func expectMistakesRefused(t *testing.T, c client.Client) {
	t.Helper()
	for says, object := range mistakes() {
		expect.Eventually(t, expect.Patience, func() error {
			err := c.Create(t.Context(), object.DeepCopyObject().(client.Object), client.DryRunAll)
			if err == nil || !strings.Contains(err.Error(), "admission webhook") {
				return fmt.Errorf("the webhook does not refuse %q: %w", object.GetName(), err)
			}
			if !strings.Contains(err.Error(), says) {
				t.Fatalf("the refusal does not say %q: %v", says, err)
			}
			return nil
		})
	}
}

// errPolicy is what a policy should have said.
var errPolicy = errors.New("the policy let it through")

// expectLifeWithoutWebhooks holds that with both managers dead nothing is stuck, and rights hold all the same.
func expectLifeWithoutWebhooks(t *testing.T, c client.Client) {
	t.Helper()
	for _, object := range mistakes() {
		object.SetNamespace(namespace) // that of the cluster is gone by now
		if err := c.Create(t.Context(), object, client.DryRunAll); err != nil {
			t.Errorf("without its manager, %T %q is refused: %v", object, object.GetName(), err)
		}
	}
	authored := &kubermaticv1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Name: "tools", Namespace: namespace}}
	if err := c.Delete(t.Context(), authored); err != nil {
		t.Errorf("without its manager, a catalogue can't be deleted: %v", err)
	}
	core := given.Installation(namespace, "core", "hello", "hello", given.Core)
	err := asEditor(t).Create(t.Context(), core, client.DryRunAll)
	if err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
		t.Errorf("a user makes a core installation: %v", errors.Join(errPolicy, err))
	}
}

// expectStrangersUnanswered asks webhooks as somebody does who reaches the port: without the path, whatever is asked gets the
// answer that says nothing.
func expectStrangersUnanswered(t *testing.T, places map[string]string) {
	t.Helper()
	stranger := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // a stranger trusts anybody
	const review = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE","namespace":"cluster-one",` +
		`"object":{"metadata":{"name":"x"},"spec":{"addonRef":{"name":"hello"}}}}}`
	for chart, place := range places {
		for _, path := range []string{"/validate-addoninstallation", "/validate-addoncatalogue", "/validate-addonset", "/", "/nothing"} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+place+path, strings.NewReader(review))
			expect.NoError(t, err)
			request.Header.Set("Content-Type", "application/json")
			answer, err := stranger.Do(request)
			expect.NoError(t, err)
			text, err := io.ReadAll(answer.Body)
			if err = errors.Join(err, answer.Body.Close()); err != nil || answer.StatusCode != http.StatusNotFound || string(text) != "404 page not found\n" {
				t.Errorf("%s answers a stranger at %s: %d %q, %v", chart, path, answer.StatusCode, text, err)
			}
		}
	}
}
