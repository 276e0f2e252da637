package webhook_test

import (
	"bytes"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/serve/webhook"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/fleet"
)

// serveWebhooks has the API server ask the three webhooks about objects in a namespace.
func serveWebhooks(t *testing.T, namespace string) {
	t.Helper()
	c := connect(t)
	fail, none := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone
	handlers := map[string]admission.Handler{
		"addoncatalogues": &webhook.Catalogues{Namespace: namespace},
		"addonsets":       &webhook.Sets{Namespace: namespace},
		"addoninstallations": &webhook.Installations{
			Reader: c, Marks: mergedcatalogue.New(logr.Discard()), Clusters: living("1.36.3"), CatalogueNamespace: namespace,
		},
	}
	mux := http.NewServeMux()
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	for resource, handler := range handlers {
		standalone, err := admission.StandaloneWebhook(&admission.Webhook{Handler: handler}, admission.StandaloneOptions{})
		if err != nil {
			t.Fatal(err)
		}
		mux.Handle("/"+resource, standalone)
		address := server.URL + "/" + resource
		configuration.Webhooks = append(configuration.Webhooks, admissionregistrationv1.ValidatingWebhook{
			Name: resource + ".example.com", FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig:      admissionregistrationv1.WebhookClientConfig{URL: &address, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{"CREATE", "UPDATE"},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{"kubermatic.k8c.io"}, APIVersions: []string{"v1"}, Resources: []string{resource},
				},
			}},
		})
	}
	create(t, c, configuration)
}

// kubectl gives what the program prints to standard error for a manifest.
func kubectl(t *testing.T, manifest string, arguments ...string) string {
	t.Helper()
	cache, err := binaries.Cache()
	if err != nil {
		t.Fatal(err)
	}
	program, err := binaries.Find(cache, "kubectl", "")
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(config, fleet.Shared().Cluster("cluster").Kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), program, append(arguments, "-f", "-")...)
	command.Env = []string{"HOME=" + t.TempDir(), "KUBECONFIG=" + config}
	var said bytes.Buffer
	command.Stdin, command.Stderr = strings.NewReader(manifest), &said
	_ = command.Run() // what it says is more than its code
	return strings.TrimSpace(said.String())
}

// manifests of the kinds, each with a place for values of an add-on.
var manifests = map[string]string{
	"AddonCatalogue": `{apiVersion: kubermatic.k8c.io/v1, kind: AddonCatalogue, metadata: {namespace: words, name: tools}, spec: {addons: [{name: web, versions: [
  {version: 1.0.0, template: {method: go-template}, source: {git: {remote: "https://git.example.com/a.git", ref: {branch: main}}}, values: %s}]}]}}`,
	"AddonSet": `{apiVersion: kubermatic.k8c.io/v1, kind: AddonSet, metadata: {namespace: words, name: tools}, spec: {clusterSelector: {}, addons: [
  {name: web, addonRef: {name: web}, targetNamespace: web, values: %s}]}}`,
	"AddonInstallation": `{apiVersion: kubermatic.k8c.io/v1, kind: AddonInstallation, metadata: {namespace: words, name: tools}, spec: {addonRef: {name: web},
  targetNamespace: web, values: %s}}`,
}

// Red when kubectl prints the patch beside the reason, as it does without Details of the refusal; and when a null that kubectl dropped is
// not warned of, or one that it sent is.
func TestWhatKubectlPrints(t *testing.T) {
	log.SetLogger(logr.Discard())
	create(t, connect(t), namespace("words"))
	serveWebhooks(t, "words")
	for kind, manifest := range manifests {
		with := func(values string) string { return strings.ReplaceAll(manifest, "%s", values) }
		t.Run(kind, func(t *testing.T) {
			refused := "The " + kind + ` "tools" is invalid: spec`
			for _, test := range []struct {
				why, values, how, says string
				null                   bool
			}{
				{"creation of what is wrong", `{a: 1}, valuesTemplate: "{{"`, "create", refused, false},
				{"applied", `{a: {b: 1}}`, "apply", "drops null", false},
				{"applied, wrong", `{a: 1}, valuesTemplate: "{{"`, "apply", refused, false},
				{"applied by the server, wrong", `{a: 1}, valuesTemplate: "{{"`, "apply --server-side --force-conflicts --field-manager=kubectl-client-side-apply", refused, false},
				{"a null", `{a: {b: null}}`, "apply", "kubectl apply drops null", true},
				{"a null and no other change", `{a: {b: null, c: null}}`, "apply", "kubectl apply drops null", true},
				{"a null that was warned of", `{a: {b: null, c: null}}`, "apply", "kubectl apply drops null", false},
				{"a null in a list", `{a: {l: [{b: null}]}}`, "apply", "values.a.l[0].b: kubectl apply drops null", true},
				{"replaced, which sends the null", `{a: {b: null}}`, "replace", "kubectl apply drops null", false},
				{"many nulls", `{a: {b: null, c: null, d: null, e: null, f: null}}`, "apply", "kubectl apply drops 2 more null values", true},
				{"applied by the server", `{a: {b: null}}`, "apply --server-side --force-conflicts", "kubectl apply drops null", false},
				{"removed", `{a: 1}`, "delete", "drops null", false},
				{"created, which sends the null", `{a: {b: null, c: 1}}`, "create", "kubectl apply drops null", false},
				// In a list that it finds equal, as in a catalogue, it leaves the null.
				{"created with a null, and applied with it", `{a: {b: null, c: 1}}`, "apply", "values.a.b: kubectl apply drops null", kind != "AddonCatalogue"},
			} {
				said := kubectl(t, with(test.values), strings.Fields(test.how)...)
				if test.says == refused && (!strings.HasPrefix(said, refused) || strings.Contains(said, "\n") || len(said) > 400) {
					t.Errorf("%s: kubectl prints %q", test.why, said)
				}
				if test.says != refused && test.null != strings.Contains(said, test.says) {
					t.Errorf("%s: kubectl prints %q", test.why, said)
				}
			}
		})
	}
}
