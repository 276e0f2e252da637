package crash_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	helmtime "helm.sh/helm/v3/pkg/time"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trellis-addons/trellis/test/expect"
)

// What others applied before an installation takes it over. The tests of the controller have kubectl and helm themselves do
// that; here, where there are many, it is written as they write it.

// previous is an object of before: as the manifest has it, and with one thing more, which is to go.
func (s *subject) previous(t testing.TB, manifest string) *unstructured.Unstructured {
	t.Helper()
	manifest = strings.NewReplacer("{{ .Variables.name }}", s.name, "VALUE", "0.9.0").Replace(manifest)
	object := &unstructured.Unstructured{}
	expect.NoError(t, yaml.Unmarshal([]byte(manifest), &object.Object))
	if object.GetKind() == "ConfigMap" {
		expect.NoError(t, unstructured.SetNestedField(object.Object, "0.9.0", "data", "old"))
	}
	if namespaced := object.GetKind() != "CustomResourceDefinition" && object.GetKind() != "ValidatingWebhookConfiguration"; namespaced {
		object.SetNamespace(s.name)
	}
	return object
}

// bring has a tool of that name make an object; a kind that was made a moment ago may not be served yet.
func (s *subject) bring(t testing.TB, object *unstructured.Unstructured, tool string) {
	t.Helper()
	await(t, func() error { return s.user.Create(t.Context(), object.DeepCopy(), client.FieldOwner(tool)) })
}

// awaitWorker waits until the Deployment of before was seen by its controller, which writes down how often it changed.
func (s *subject) awaitWorker(t testing.TB) {
	t.Helper()
	await(t, func() error {
		worker := &appsv1.Deployment{}
		err := s.user.Get(t.Context(), client.ObjectKey{Namespace: s.name, Name: "worker"}, worker)
		if err == nil && worker.Status.ObservedGeneration == 0 {
			err = errors.New("the Deployment was not seen yet")
		}
		return err
	})
}

func (s *subject) userNamespace(t testing.TB) {
	t.Helper()
	expect.Create(t, s.user, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}})
}

// kkpAddon is add-on probe as KKP applies its own add-ons: with kubectl, from the client side, labelled with the add-on.
func kkpAddon(t testing.TB, s *subject) {
	t.Helper()
	s.userNamespace(t)
	for _, manifest := range []string{probeDefinition, probeResource, probeSettings, probeDeployment, probeWebhooks} {
		object := s.previous(t, manifest)
		object.SetLabels(map[string]string{"kubermatic-addon": "probe"})
		applied, err := json.Marshal(object.Object)
		expect.NoError(t, err)
		object.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": string(applied)})
		s.bring(t, object, "kubectl-client-side-apply")
	}
	s.awaitWorker(t)
}

// helmReleases are two revisions of a Helm release with the objects of chart web, and one that the chart has no more.
func helmReleases(t testing.TB, s *subject) {
	t.Helper()
	s.userNamespace(t)
	manifest := ""
	for _, text := range []string{probeSettings, probeDropped, webAccount, probeDeployment} {
		object := s.previous(t, text)
		content, err := yaml.Marshal(object.Object)
		expect.NoError(t, err)
		manifest += "---\n# Source: web/templates/all.yaml\n" + string(content)
		object.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "Helm"})
		object.SetAnnotations(map[string]string{"meta.helm.sh/release-name": s.name, "meta.helm.sh/release-namespace": s.name})
		s.bring(t, object, "helm")
	}
	s.awaitWorker(t)
	secrets := driver.NewSecrets(s.userClients.CoreV1().Secrets(s.name))
	for i, status := range []helmrelease.Status{helmrelease.StatusSuperseded, helmrelease.StatusDeployed} {
		release := &helmrelease.Release{
			Name: s.name, Namespace: s.name, Version: i + 1, Manifest: manifest, Config: map[string]any{"name": s.name},
			Chart: &chart.Chart{Metadata: &chart.Metadata{APIVersion: chart.APIVersionV2, Name: "web", Version: "0.9.0"}},
			Info: &helmrelease.Info{
				FirstDeployed: helmtime.Now(), LastDeployed: helmtime.Now(), Status: status, Description: "Install complete",
			},
		}
		expect.NoError(t, secrets.Create(fmt.Sprintf("sh.helm.release.v1.%s.v%d", s.name, i+1), release))
	}
}
