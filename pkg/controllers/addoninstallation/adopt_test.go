package addoninstallation_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/chart"
	"github.com/trellis-addons/trellis/pkg/render/gotemplate"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
)

// bothMethods renders in process by either method.
func bothMethods() map[string]render.Renderer {
	return map[string]render.Renderer{
		string(kubermaticv1.MethodGoTemplate): gotemplate.New(), string(kubermaticv1.MethodHelm): chart.New(),
	}
}

// content commits files below a path of repository "content", and returns a version with them.
func (w *world) content(version string, method kubermaticv1.Method, path string, files map[string]string) kubermaticv1.AddonVersion {
	w.t.Helper()
	placed := map[string]string{}
	for name, text := range files {
		placed[path+"/"+name] = text
	}
	if _, err := w.sources.Commit("content", placed); err != nil {
		w.t.Fatal(err)
	}
	return kubermaticv1.AddonVersion{
		Version: version, Template: &kubermaticv1.Template{Method: method},
		Source: given.Git(w.sources.GitURL+"/content.git", path),
		Values: &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"version":%q}`, version)},
	}
}

// offer is publish with complete versions.
func (w *world) offer(name string, kind kubermaticv1.CatalogueType, versions ...kubermaticv1.AddonVersion) {
	w.t.Helper()
	w.publishVersions(name, kind, versions)
}

const settingsTemplate = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {version: '{{ .Values.version }}'}\n"

// webChart has ConfigMap settings, and the named ones.
func webChart(version string, others ...string) map[string]string {
	files := map[string]string{
		"Chart.yaml":              "apiVersion: v2\nname: web\nversion: " + version + "\n",
		"values.yaml":             "version: " + version + "\n",
		"templates/settings.yaml": settingsTemplate,
	}
	for _, name := range others {
		files["templates/"+name+".yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {only: here}\n"
	}
	return files
}

// folder writes files for a program to read.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	above := t.TempDir()
	for name, text := range files {
		path := filepath.Join(above, name)
		expect.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)))
	}
	return above
}

// program runs a real program with the user cluster's kubeconfig.
func (w *world) program(name, release string, arguments ...string) string {
	w.t.Helper()
	return w.programAs(name, name, release, arguments...)
}

// programAs runs it under another name, which is then its field manager.
func (w *world) programAs(as, name, release string, arguments ...string) string {
	w.t.Helper()
	kept, err := binaries.Cache()
	expect.NoError(w.t, err)
	path, err := binaries.Find(kept, name, release)
	expect.NoError(w.t, err)
	file := filepath.Join(w.t.TempDir(), "kubeconfig")
	expect.NoError(w.t, os.WriteFile(file, fleet.Shared().Cluster("both").Kubeconfig, 0o600))
	command := exec.CommandContext(w.t.Context(), path, append(arguments, "--kubeconfig", file)...)
	command.Args[0] = as
	command.Env = append(os.Environ(), "HOME="+filepath.Dir(file), "HELM_DRIVER=secrets")
	output, err := command.CombinedOutput()
	if err != nil {
		w.t.Fatalf("%s %q: %v\n%s", name, arguments, err, output)
	}
	return string(output)
}

// helmHistory is "revision status" of every revision, as the program shows it.
func (w *world) helmHistory(name, namespace string) []string {
	w.t.Helper()
	var rows []struct {
		Revision int    `json:"revision"`
		Status   string `json:"status"`
	}
	expect.NoError(w.t, json.Unmarshal([]byte(w.program("helm", "", "history", name, "-n", namespace, "-o", "json")), &rows))
	var lines []string
	for _, row := range rows {
		lines = append(lines, fmt.Sprintf("%d %s", row.Revision, row.Status))
	}
	return lines
}

// configMaps are those of a namespace by name, without those that every namespace has.
func (w *world) configMaps(namespace string) map[string]corev1.ConfigMap {
	w.t.Helper()
	var list corev1.ConfigMapList
	expect.List(w.t, w.seed, &list, client.InNamespace(namespace))
	found := map[string]corev1.ConfigMap{}
	for _, item := range list.Items {
		if item.Name != "kube-root-ca.crt" {
			found[item.Name] = item
		}
	}
	return found
}

func uids(objects map[string]corev1.ConfigMap) map[string]types.UID {
	found := map[string]types.UID{}
	for name, object := range objects {
		found[name] = object.UID
	}
	return found
}

func (w *world) adopt(object *kubermaticv1.AddonInstallation) {
	w.t.Helper()
	w.edit(object, func(object *kubermaticv1.AddonInstallation) {
		object.Annotations = map[string]string{kubermaticv1.AnnotationAdopt: "true"}
	})
}

// TestHelmReleaseIsGoneOnWith fails if our release is written while a foreign one exists, or before it is read
// (CheckRelease taken out of render): history then has a foreign 1 and ours of the same number; if the number does not
// continue (NextRelease without p.Foreign); if older revisions stay deployed (helmrelease.Adopt taken out of
// writeCopy); if objects of the old release alone stay, or are removed without Helm's marks (FindExtras taken out;
// IsLeftover always true); if an object is recreated.
func TestHelmReleaseIsGoneOnWith(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.renderers = bothMethods()
	w.start()
	namespace := w.unique("adopted")
	w.program("helm", "", "install", "adopted", folder(t, webChart("0.8.0", "leftover")), "-n", namespace, "--create-namespace")
	w.program("helm", "", "upgrade", "adopted", folder(t, webChart("0.9.0", "leftover", "unmarked")), "-n", namespace)
	unmarked := w.configMaps(namespace)["unmarked"]
	unmarked.Annotations = nil
	expect.Update(t, w.seed, &unmarked)
	before := uids(w.configMaps(namespace))

	w.offer("adopted", kubermaticv1.CatalogueCustom, w.content("1.0.0", kubermaticv1.MethodHelm, "adopted", webChart("1.0.0")))
	object := w.install("adopted", "")
	w.expectReady(object, kubermaticv1.ReasonReleaseNameTaken, `"adopted"`, "revision 2", kubermaticv1.AnnotationAdopt)
	if diff := cmp.Diff([]string{"1 superseded", "2 deployed"}, w.helmHistory("adopted", namespace)); diff != "" || w.installed(object) != "0.9.0" {
		t.Fatalf("something was written without adopt: version %s, history (-want +got):\n%s", w.installed(object), diff)
	}

	w.adopt(object)
	w.expectInstalled(object, "1.0.0", "")
	after := uids(w.configMaps(namespace))
	delete(before, "leftover")
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("UIDs (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"1 superseded", "2 superseded", "3 deployed"}, w.helmHistory("adopted", namespace)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	w.expectEvent(kubermaticv1.EventAdopted, object, `"adopted"`, "revision 2", "pruned: ConfigMap "+namespace+"/leftover")
	w.program("helm", "", "upgrade", "adopted", folder(t, webChart("1.0.1")), "-n", namespace, "--take-ownership")

	expect.Delete(t, w.seed, object)
	expect.Gone(t, w.seed, object)
	var left corev1.SecretList
	if err := w.seed.List(t.Context(), &left, client.InNamespace(namespace), client.MatchingLabels{"owner": "helm"}); err != nil || len(left.Items) > 0 {
		t.Errorf("%d Secrets of the release are left, %v", len(left.Items), err)
	}
}

// TestUnreadableHelmReleaseIsNotBelieved fails if a release is accepted that unpacks to more than the limit, that is no
// release, or whose content has another name (a case of read taken out): its objects would be pruned, or the
// reconciliation would fail forever.
func TestUnreadableHelmReleaseIsNotBelieved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.renderers = bothMethods()
	w.start()
	namespace := w.unique("doubted")
	w.program("helm", "", "install", "doubted", folder(t, webChart("0.9.0", "leftover")), "-n", namespace, "--create-namespace")
	first := &corev1.Secret{}
	expect.Get(t, w.seed, client.ObjectKey{Namespace: namespace, Name: "sh.helm.release.v1.doubted.v1"}, first)
	for i, data := range [][]byte{first.Data["release"], []byte("none")} {
		forged := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: fmt.Sprintf("sh.helm.release.v1.doubted.v%d", 7+i), Labels: maps.Clone(first.Labels),
			},
			Type: first.Type, Data: map[string][]byte{"release": data},
		}
		w.create(forged)
	}
	w.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "sh.helm.release.v1.doubted.v99999999999", Labels: maps.Clone(first.Labels),
		},
		Type: first.Type, Data: map[string][]byte{"release": bytes.Repeat([]byte("x"), 100)},
	})
	w.offer("doubted", kubermaticv1.CatalogueCustom, w.content("1.0.0", kubermaticv1.MethodHelm, "doubted", webChart("1.0.0")))
	object := w.install("doubted", "")
	w.adopt(object)
	w.expectInstalled(object, "1.0.0", "")
	if _, stays := w.configMaps(namespace)["leftover"]; !stays {
		t.Error("what only a release has that can't be read was removed")
	}
	w.expectEvent(kubermaticv1.EventReleaseUnreadable, object, `"sh.helm.release.v1.doubted.v8"`, "is ignored")
	if object.Status.Release == nil || object.Status.Release.Revision != 9 {
		t.Errorf("the release is %+v, want revision 9", object.Status.Release)
	}
}

const kkpManifest = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {kubermatic-addon: canal}}
data: {version: "0", old: "1"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {kubermatic-addon: canal}}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {old: "1"}}
    spec: {containers: [{name: web, image: "example.com/web:1", env: [{name: OLD, value: "1"}, {name: KEPT, value: "1"}]}]}
`

// RS29: Objects that kubectl applied client-side, as KKP does, are adopted without a change. It fails if the managed
// fields are not migrated (adoptFields taken out: key "old", the label and the environment stay forever), if a field of
// another client is lost, if kubectl's copy stays, or if an object is recreated.
func TestKKPAddonIsAdoptedUnchanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	namespace := w.unique("canal")
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	file := filepath.Join(folder(t, map[string]string{"canal.yaml": kkpManifest}), "canal.yaml")
	w.program("kubectl", "", "apply", "--prune", "--filename", file, "--selector", "kubermatic-addon=canal", "-n", namespace)
	w.program("kubectl", "", "annotate", "configmap", "settings", "example.com/mine=1", "-n", namespace)
	before := w.configMaps(namespace)["settings"]
	addon := w.kkpAddon("canal")

	next := strings.NewReplacer(`, old: "1"}`, "}", `, annotations: {old: "1"}`, "", `{name: OLD, value: "1"}, `, "",
		", labels: {kubermatic-addon: canal}", "", `"0"`, "'{{ .Variables.version }}'").Replace(kkpManifest)
	w.offer("canal", kubermaticv1.CatalogueCustom,
		w.content("1.0.0", kubermaticv1.MethodGoTemplate, "canal", map[string]string{"canal.yaml": next}))
	object := w.install("canal", "")
	w.expectReady(object, kubermaticv1.ReasonKKPAddonExists)
	expect.Delete(t, w.seed, addon)
	w.release(addon)
	w.expectReady(object, kubermaticv1.ReasonObjectExists, `KKP add-on "canal"`, kubermaticv1.AnnotationAdopt)
	w.adopt(object)
	expect.HasCondition(t, w.seed, object, expect.Is(kubermaticv1.ConditionApplied, "True", kubermaticv1.ReasonApplied))

	after := w.configMaps(namespace)["settings"]
	if after.UID != before.UID {
		t.Error("it was made anew")
	}
	if diff := cmp.Diff(map[string]string{"version": "1.0.0"}, after.Data); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"example.com/mine": "1"}, after.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if _, stays := after.Labels["kubermatic-addon"]; stays {
		t.Error("KKP's label stays")
	}
	reported := w.program("kubectl", "", "get", "deployment", "web", "-n", namespace, "-o", "json", "--show-managed-fields")
	if strings.Contains(reported, "OLD") || strings.Contains(reported, "client-side") || !strings.Contains(reported, "KEPT") {
		t.Errorf("the Deployment is\n%s", reported)
	}
}
