package endtoend_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/sandbox"
)

// testRefusedAtOnce: with the strict validation that kubectl asks for, these never get in, and the refusal says what is
// wrong.
func testRefusedAtOnce(t *testing.T, box *sandbox.Sandbox) {
	for _, test := range []struct {
		why, word string
		mistake   func(version map[string]any)
	}{
		{"an unknown field", `unknown field "spec.addons[0].versions[0].sauce"`, func(version map[string]any) { version["sauce"] = "git" }},
		{"a range that can't be read", `constraints.k8sVersion: range "newer than 1.34" can't be parsed: write it like`, func(version map[string]any) {
			version["constraints"] = map[string]any{"k8sVersion": "newer than 1.34"}
		}},
		{"two sources in one version", "set exactly one of git, docker and helm", func(version map[string]any) {
			version["source"].(map[string]any)["helm"] = map[string]any{"url": "https://charts.example.com", "chart": "a", "version": "1.0.0"}
		}},
	} {
		t.Run(test.why, func(t *testing.T) {
			catalogue := asUnstructured(t, catalogueOf("mistaken", gitVersion(box, "changing", "v1")))
			addon := catalogue.Object["spec"].(map[string]any)["addons"].([]any)[0].(map[string]any)
			test.mistake(addon["versions"].([]any)[0].(map[string]any))
			err := box.Client(sandbox.Master).Create(t.Context(), catalogue, client.FieldValidation(metav1.FieldValidationStrict))
			if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
				t.Fatalf("the API server answers %v", err)
			}
			if !strings.Contains(err.Error(), test.word) {
				t.Errorf("the refusal does not say %q: %v", test.word, err)
			}
		})
	}
}

// testExplained: what shows only when it is fetched or rendered becomes a condition that names the object, the place and
// the mend; and what is installed stays as it is.
func testExplained(t *testing.T, box *sandbox.Sandbox) {
	seed, user := box.Client(cluster.Seed), box.Client(cluster.Name)
	commit(t, box, "changing", map[string]string{
		"v1/settings.yaml": settingsManifest("one"), "broken/settings.yaml": "apiVersion: v1\nkind: {{ .Cluster.Name\n",
	})
	catalogue := catalogueOf("changing", gitVersion(box, "changing", "v1"))
	expect.Ensure(t, box.Client(sandbox.Master), catalogue)
	installation := newInstallation("changing", "changing")
	expect.Ensure(t, seed, installation)
	ready(t, seed, installation)
	before := settings(t, user, "changing")

	for _, test := range []struct {
		why, condition, reason string
		words                  []string
		version                kubermaticv1.AddonVersion
	}{
		{"a missing git path", kubermaticv1.ConditionFetched, kubermaticv1.ReasonArtifactNotFound, []string{"nowhere", "/changing.git", "main"},
			gitVersion(box, "changing", "nowhere")},
		{"an unknown chart version", kubermaticv1.ConditionFetched, kubermaticv1.ReasonArtifactNotFound, []string{"9.9.9", box.Sources.ChartsURL},
			chartVersion(box, "web", "9.9.9")},
		{"a template that doesn't parse", kubermaticv1.ConditionRendered, kubermaticv1.ReasonRenderFailed, []string{"settings.yaml:2"},
			gitVersion(box, "changing", "broken")},
	} {
		t.Run(test.why, func(t *testing.T) {
			setVersions(t, box.Client(sandbox.Master), catalogue, test.version)
			expect.Object(t, seed, installation.DeepCopy(), func(found *kubermaticv1.AddonInstallation) error {
				if err := expect.Condition(found, test.condition, "False", test.reason); err != nil {
					return err
				}
				return expectWords(meta.FindStatusCondition(found.Status.Conditions, kubermaticv1.ConditionReady).Message, test.words)
			})
			if diff := cmp.Diff(before, settings(t, user, "changing")); diff != "" {
				t.Errorf("what is installed has changed (-before +after):\n%s", diff)
			}
		})
	}
	setVersions(t, box.Client(sandbox.Master), catalogue, gitVersion(box, "changing", "v1"))
	ready(t, seed, installation)
}

func expectWords(message string, words []string) error {
	for _, word := range words {
		if !strings.Contains(message, word) {
			return fmt.Errorf("the message does not name %q: %s", word, message)
		}
	}
	return nil
}

func asUnstructured(t *testing.T, catalogue *kubermaticv1.AddonCatalogue) *unstructured.Unstructured {
	t.Helper()
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(catalogue)
	expect.NoError(t, err)
	object := &unstructured.Unstructured{Object: raw}
	object.SetGroupVersionKind(kubermaticv1.GroupVersion.WithKind("AddonCatalogue"))
	return object
}

// setVersions replaces the versions of the catalogue's only add-on.
func setVersions(t *testing.T, master client.Client, catalogue *kubermaticv1.AddonCatalogue, versions ...kubermaticv1.AddonVersion) {
	t.Helper()
	before := catalogue.DeepCopy()
	catalogue.Spec.Addons[0].Versions = versions
	expect.Patch(t, master, catalogue, client.MergeFrom(before))
}

// settings is the user cluster's copy, with everything that a write would change.
func settings(t *testing.T, user client.Client, namespace string) *corev1.ConfigMap {
	t.Helper()
	found := &corev1.ConfigMap{}
	expect.Get(t, user, client.ObjectKey{Namespace: namespace, Name: "settings"}, found)
	return found
}

func settingsManifest(value string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {value: " + value + "}\n"
}
