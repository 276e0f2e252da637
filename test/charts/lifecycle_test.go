package charts

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	kit "github.com/trellis-addons/trellis/test/world"
)

const (
	setsCRD      = "addonsets.kubermatic.k8c.io"
	installsCRD  = "addoninstallations.kubermatic.k8c.io"
	aFieldOfSets = "paused"
)

// TestChartsAreUpgradedAndRemoved: a release of before, whose CRDs came from crds/ and lack a field and a kind, is upgraded to this one by
// Helm itself, the other chart joins it on the same cluster, and both are removed. Red when the field or the kind does not appear, when
// the second chart is refused, when a field of a later release goes, when a removal goes on although something is left or does not say
// what, when the test of a chart finds nothing wrong, when CRDs or catalogues go with a chart, when a chart can't go without kinds, and
// when a Job lacks a right or has a spare one.
func TestChartsAreUpgradedAndRemoved(t *testing.T) {
	where := fleet.Shared().Cluster(upgraded)
	c := kit.Client(t, where.Config)
	withoutCRDs(t, c)
	played, seen := playJobs(t, where, c), len(callsOfJobs(t))
	seed, master := chartFolder(t, "trellis-seed"), chartFolder(t, "trellis-master")

	mustHelm(t, where, "install", "trellis-seed", previous(t, seed))
	if fieldsOfSets(t)[aFieldOfSets] {
		t.Fatal("the release of before has the field already")
	}
	expect.Create(t, c, custom("kept"))

	mustHelm(t, where, "upgrade", "trellis-seed", seed)
	if reported := played.Output("trellis-seed-crds"); !fieldsOfSets(t)[aFieldOfSets] || !strings.Contains(reported, setsCRD+" is up to date now") ||
		!strings.Contains(reported, installsCRD+" is new") {
		t.Errorf("the upgrade brought no field or no kind, and told:\n%s", reported)
	}
	mustHelm(t, where, "install", "trellis-master", master)
	if reported := played.Output("trellis-master-crds"); !strings.Contains(reported, setsCRD+" was up to date") {
		t.Errorf("the second chart told:\n%s", reported)
	}
	changeSets(t, func(fields map[string]apiextensionsv1.JSONSchemaProps) {
		fields["later"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	})
	mustHelm(t, where, "rollback", "trellis-seed", "1")
	mustHelm(t, where, "upgrade", "trellis-seed", seed)
	if reported := played.Output("trellis-seed-crds"); !fieldsOfSets(t)["later"] || !strings.Contains(reported, "newer release installed it: it has v1.spec.later") {
		t.Errorf("a field of a later release went, and the upgrade told:\n%s", reported)
	}
	expectGuarded(t, where, c, played)
	expectUnsound(t, where, c, played)
	granted := hooks(t, where, "trellis-seed") + hooks(t, where, "trellis-master")
	mustHelm(t, where, "uninstall", "trellis-seed")
	if !fieldsOfSets(t)["later"] {
		t.Error("the removal took a CRD")
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(custom("kept")), custom("kept")); err != nil {
		t.Errorf("the removal took a catalogue: %v", err)
	}
	withoutCRDs(t, c)
	mustHelm(t, where, "uninstall", "trellis-master")
	for _, job := range jobs {
		expectRightsUsed(t, job, granted, callsOfJobs(t)[seen:], excusedOfJobs[job])
	}
}

// expectGuarded holds that neither chart goes while there is something of its own.
func expectGuarded(t *testing.T, where *fleet.Cluster, c client.Client, played *Jobs) {
	t.Helper()
	place := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "cluster-left"}}
	expect.Create(t, c, place)
	installation, set := install("hello", place.Name), mistakes()[circleMistake]
	expect.Create(t, c, installation)
	expect.Create(t, c, set)
	for release, words := range map[string]string{
		"trellis-seed": "1 AddonInstallation in 1 namespace would be left", "trellis-master": "1 AddonSet in 1 namespace would be left",
	} {
		output, err := helm(t, where, "uninstall", release)
		if reported := played.Output(release + "-removal"); err == nil || !strings.Contains(reported, words) || !strings.Contains(reported, "--no-hooks") {
			t.Errorf("%s is removed although something is left: %v\n%s\nthe guard told:\n%s", release, err, output, reported)
		}
	}
	for _, object := range []client.Object{installation, set} {
		expect.Delete(t, c, object)
	}
}

// expectUnsound holds that the test of a chart finds an older CRD, a missing right, no leader and no webhook.
func expectUnsound(t *testing.T, where *fleet.Cluster, c client.Client, played *Jobs) {
	t.Helper()
	changeSets(t, func(fields map[string]apiextensionsv1.JSONSchemaProps) { delete(fields, aFieldOfSets) })
	for _, release := range []string{"trellis-seed", "trellis-master"} {
		expect.Delete(t, c, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: namespace + ":" + release}})
		output, err := helm(t, where, "test", release)
		reported := played.Output(release + "-check")
		for _, words := range []string{
			"kinds: CRD " + setsCRD + " is older than this program: it lacks v1.spec." + aFieldOfSets,
			"rights: system:serviceaccount:" + namespace + ":" + release + " may not ", "leader: lease", "webhooks: the API server got no",
		} {
			if err == nil || !strings.Contains(reported, words) {
				t.Errorf("the test of %s does not find %q: %v\n%s\nthe check told:\n%s", release, words, err, output, reported)
			}
		}
	}
}

// withoutCRDs leaves the cluster without kinds of ours, and with a platform namespace that admits restricted pods only.
func withoutCRDs(t *testing.T, c client.Client) {
	t.Helper()
	var found apiextensionsv1.CustomResourceDefinitionList
	expect.List(t, crdClient(t), &found)
	for i := range found.Items {
		expect.Delete(t, crdClient(t), &found.Items[i])
		expect.Gone(t, crdClient(t), &found.Items[i])
	}
	apply(t, c, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
			"name": namespace, "labels": map[string]any{"pod-security.kubernetes.io/enforce": "restricted"},
		},
	}})
}

func chartFolder(t *testing.T, name string) string {
	t.Helper()
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "charts", name)
}

// previous is a chart as an earlier release had it: without tasks and one kind, and with sets that lack a field.
func previous(t *testing.T, chart string) string {
	t.Helper()
	folder := copied(t, chart, func(crd *apiextensionsv1.CustomResourceDefinition) {
		delete(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties, aFieldOfSets)
	})
	if err := errors.Join(os.Remove(filepath.Join(folder, "templates", "tasks.yaml")),
		os.Remove(filepath.Join(folder, "crds", "kubermatic.k8c.io_addoninstallations.yaml"))); err != nil {
		t.Fatal(err)
	}
	return folder
}

// copied is a chart with another CRD of sets.
func copied(t *testing.T, chart string, change func(*apiextensionsv1.CustomResourceDefinition)) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), filepath.Base(chart))
	if err := os.CopyFS(folder, os.DirFS(chart)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "crds", "kubermatic.k8c.io_addonsets.yaml")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(content, &crd); err != nil {
		t.Fatal(err)
	}
	change(&crd)
	if content, err = yaml.Marshal(crd); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// fieldsOfSets are those of the spec.
func fieldsOfSets(t *testing.T) map[string]bool {
	t.Helper()
	var crd apiextensionsv1.CustomResourceDefinition
	expect.Get(t, crdClient(t), client.ObjectKey{Name: setsCRD}, &crd)
	fields := map[string]bool{}
	for name := range crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties {
		fields[name] = true
	}
	return fields
}

// changeSets changes the fields of the spec.
func changeSets(t *testing.T, change func(fields map[string]apiextensionsv1.JSONSchemaProps)) {
	t.Helper()
	var crd apiextensionsv1.CustomResourceDefinition
	expect.Get(t, crdClient(t), client.ObjectKey{Name: setsCRD}, &crd)
	change(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties)
	expect.Update(t, crdClient(t), &crd)
}
