package addoninstallation_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	kit "github.com/trellis-addons/trellis/test/world"
)

// Webhooks that fail closed, and whose service does not answer: such as of a network that is not up yet, or of policies
// without a network.

const (
	validating = "ValidatingWebhookConfiguration"
	mutating   = "MutatingWebhookConfiguration"
)

// guard is a webhook, named after this world, for the ConfigMaps of its installations with the given names.
func (w *world) guard(kind, policy string, of ...string) string {
	w.removeAtTheEnd(&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})
	w.removeAtTheEnd(&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})
	names := ""
	for _, name := range of {
		names += fmt.Sprintf("%s-%s, ", name, w.id)
	}
	return fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: %s
metadata: {name: %s}
webhooks:
- name: guard.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: %s
  clientConfig: {service: {namespace: kube-system, name: nobody}}
  namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [%s]}]}
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: ["*"]}]
`, kind, w.namespace, policy, names)
}

// publishGuarded offers an add-on of one method, whose versions have ConfigMap settings and the given other objects.
func (w *world) publishGuarded(name string, slot kubermaticv1.Slot, method kubermaticv1.Method, others ...string) {
	w.t.Helper()
	addon := kubermaticv1.Addon{Name: kubermaticv1.AddonName(name), Slot: slot}
	for i, other := range others {
		version := fmt.Sprintf("%d.0.0", i+1)
		settings := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {version: '" + version + "'}\n"
		files := map[string]string{"settings.yaml": settings, "guard.yaml": other}
		if method == kubermaticv1.MethodHelm {
			files = map[string]string{
				"Chart.yaml":              "apiVersion: v2\nname: " + name + "\nversion: " + version + "\n",
				"templates/settings.yaml": settings, "templates/guard.yaml": other,
			}
		}
		repository := name + "-" + version
		if _, err := w.sources.Commit(repository, files); err != nil {
			w.t.Fatal(err)
		}
		made := w.version(offered{version: version})
		made.Template.Method, made.Source.Git.Remote = method, kubermaticv1.GitRemote(w.sources.GitURL+"/"+repository+".git")
		addon.Versions = append(addon.Versions, made)
	}
	w.publishAddon(kubermaticv1.CatalogueCustom, addon)
}

// expectRefused waits until an installation reports the webhook that refuses an object, and the time of the next
// attempt.
func (w *world) expectRefused(object *kubermaticv1.AddonInstallation) {
	w.t.Helper()
	settings := "ConfigMap " + object.Spec.TargetNamespace + "/settings"
	w.expectReady(object, kubermaticv1.ReasonFailed, settings, `failed calling webhook "guard.example.com"`)
	if object.Status.Failures == 0 || object.Status.NextAttempt == nil {
		w.t.Errorf("%s does not say when it is tried again: %+v", object.Name, object.Status)
	}
}

// expectGuard waits until the webhook exists.
func (w *world) expectGuard() {
	w.t.Helper()
	guard := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	expect.Eventually(w.t, expect.Patience, func() error { return w.seed.Get(w.t.Context(), client.ObjectKeyFromObject(guard), guard) })
}

// unguard deletes the webhook.
func (w *world) unguard() error {
	guard := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	return client.IgnoreNotFound(w.seed.Delete(w.t.Context(), guard))
}

// expectSettings waits until the settings in the user cluster have that version.
func (w *world) expectSettings(object *kubermaticv1.AddonInstallation, version string) {
	w.t.Helper()
	expect.Eventually(w.t, expect.Patience, func() error {
		if have := w.installed(object); have != version {
			return fmt.Errorf("the settings have %q", have)
		}
		return nil
	})
}

// A network has a webhook that refuses the network's own objects and those of the cloud provider while its service does
// not answer. It fails if the webhook is created before the network's other objects; if a refusal is not reported with
// the webhook's name, or not retried; if storage and the rest wait for the cloud provider forever; and if a webhook
// that a user deleted is restored, by a repair or by another version, before the objects that it refused exist.
func TestANetworkWhoseWebhookNobodyAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.renderers, w.orderTimeout, w.driftInterval = bothMethods(), 10*time.Second, time.Second
	w.clock = kit.RunningClock(t)
	w.publishGuarded("cni", kubermaticv1.SlotCNI, kubermaticv1.MethodHelm,
		w.guard(validating, "Fail", "cni", "cpi"), w.guard(validating, "Ignore", "cni", "cpi"))
	w.publishGuarded("cpi", kubermaticv1.SlotCPI, kubermaticv1.MethodGoTemplate, "")
	w.publishGuarded("csi", kubermaticv1.SlotCSI, kubermaticv1.MethodHelm, "")
	w.publishGuarded("rest", "", kubermaticv1.MethodGoTemplate, "")
	cni, cpi := w.request("cni", "cni", "1.0.0"), w.request("cpi", "cpi", "")
	csi, rest := w.request("csi", "csi", ""), w.request("rest", "rest", "")
	stop := w.startUntil()
	w.expectInstalled(cni, "1.0.0", "2.0.0")
	w.expectGuard()
	w.expectRefused(cpi)
	for _, later := range []*kubermaticv1.AddonInstallation{csi, rest} {
		w.hurry(20, func() { w.expectInstalled(later, "1.0.0", "") })
		w.expectEvents(later, "Warning OrderGivenUp", "Normal Applied")
	}

	stop() // so that the next comparison finds that both are missing, and not one of them
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cni.Spec.TargetNamespace, Name: "settings"}}
	expect.Eventually(t, expect.Patience, func() error { // the API server calls the webhook for a moment longer
		return errors.Join(w.unguard(), w.seed.Delete(t.Context(), settings))
	})
	w.start()
	w.expectSettings(cni, "1.0.0")
	w.expectGuard()

	w.want(cni, "2.0.0")
	w.expectRefused(cni)
	expect.NoError(t, w.unguard())
	w.hurry(20, func() {
		w.expectInstalled(cni, "2.0.0", "")
		w.expectInstalled(cpi, "1.0.0", "")
	})
}

// Policies whose service does not answer without a network are applied once the network works, and not before: their
// webhook would refuse objects that the network needs. It fails if add-ons without a slot are applied while the network
// is only applied; if another version of the network that the webhook refuses is not reported with the webhook's name;
// and if their own webhook blocks their removal, or their end does not unblock the network.
func TestPoliciesComeOnceTheNetworkWorks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publishSlow("cni", kubermaticv1.CatalogueCustom, kubermaticv1.SlotCNI, "1.0.0", "2.0.0")
	w.publishGuarded("policy", "", kubermaticv1.MethodGoTemplate, w.guard(mutating, "Fail", "cni", "policy"))
	policy, cni := w.request("policy", "policy", ""), w.request("cni", "cni", "1.0.0")
	w.start()
	w.expectReady(cni, kubermaticv1.ReasonProgressing)
	w.expectHeld(policy, kubermaticv1.ReasonWaitingForOrder, `installation "cni"`, "earlier slot")
	w.expectNotBegun(policy)
	if w.has(&admissionv1.MutatingWebhookConfiguration{}, "", w.namespace) {
		t.Error("the policies' webhook is there before the network works")
	}
	w.scale(cni, 0)
	w.expectInstalled(policy, "1.0.0", "")

	w.want(cni, "2.0.0")
	w.expectRefused(cni)
	w.delete(policy)
	expect.Gone(t, w.seed, policy)
	w.expectSettings(cni, "2.0.0")
}
