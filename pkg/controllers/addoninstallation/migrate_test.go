package addoninstallation_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring/verbs"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	kit "github.com/trellis-addons/trellis/test/world"
)

// command runs `kubectl addons` with the kubeconfig of the seed and of the user cluster, and returns its output and errors.
func (w *world) command(arguments ...string) (out, errOut string, code int) {
	w.t.Helper()
	file := filepath.Join(w.t.TempDir(), "kubeconfig")
	expect.NoError(w.t, os.WriteFile(file, fleet.Shared().Cluster("both").Kubeconfig, 0o600))
	var written, failed bytes.Buffer
	tool := cli.NewTool(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &written, ErrOut: &failed})
	arguments = append(arguments, "--kubeconfig", file, "--cluster", strings.TrimPrefix(w.namespace, "cluster-"))
	if arguments[0] == "migrate" {
		arguments = append(arguments, "--user-kubeconfig", file)
	}
	code = cli.Run(w.t.Context(), tool, arguments, verbs.All()...)
	return written.String(), failed.String(), code
}

// generations are UID, generation and content of the Deployments and ConfigMaps of namespaces. In the first one kubectl applied
// them: Kubernetes counts the removal of its annotation as a generation of a Deployment.
func (w *world) generations(ofKubectl string, others ...string) map[string]string {
	w.t.Helper()
	found := map[string]string{}
	for _, namespace := range append([]string{ofKubectl}, others...) {
		var list appsv1.DeploymentList
		expect.List(w.t, w.seed, &list, client.InNamespace(namespace))
		for _, one := range list.Items {
			if namespace == ofKubectl {
				one.Generation = 0
			}
			spec, err := json.Marshal(one.Spec)
			expect.NoError(w.t, err)
			found[namespace+"/deployment/"+one.Name] = fmt.Sprintf("%s %d %s", one.UID, one.Generation, spec)
		}
		for name, one := range w.configMaps(namespace) {
			found[namespace+"/configmap/"+name] = fmt.Sprintf("%s %v", one.UID, one.Data)
		}
	}
	return found
}

const migratedDeployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "example.com/web:1"}]}
`

// migratedChart is a chart of a name that no other test has: all tests share the user cluster.
func migratedChart(name string) map[string]string {
	files := webChart("1.0.0")
	files["Chart.yaml"] = "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n"
	files["templates/web.yaml"] = migratedDeployment
	return files
}

// application creates an ApplicationInstallation as KKP leaves it after it installed the release.
func (w *world) application(namespace, name, addon, release, values string) *unstructured.Unstructured {
	w.t.Helper()
	made := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"applicationRef": map[string]any{"name": addon, "version": "1.0.0"}, "namespace": map[string]any{"name": namespace},
		"valuesBlock": values,
	}}}
	made.SetAPIVersion("apps.kubermatic.k8c.io/v1")
	made.SetKind("ApplicationInstallation")
	made.SetNamespace(namespace)
	made.SetName(name)
	made.SetFinalizers([]string{"kubermatic.k8c.io/cleanup-application-installation"})
	w.create(made)
	made.Object["status"] = map[string]any{"method": "helm", "helmRelease": map[string]any{"name": release, "version": int64(1)}}
	expect.UpdateStatus(w.t, w.seed, made)
	return made
}

// `kubectl addons migrate` makes one installation of each KKP Addon, ApplicationInstallation and Helm release. It fails if something
// is written before --apply, if an installation adopts while KKP still works on its objects (paused, and the step
// "kkp-addon"), if a value, a version or the release is not carried over (an object changes), or if an object is recreated.
func TestMigrateLeavesObjectsAsTheyAre(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	expect.NoError(t, fleet.InstallCRDs(t.Context(), fleet.Shared().Cluster("both").Config, "testdata/applications"))
	w.renderers = bothMethods()
	w.start()
	canal, shop, web := w.unique("canal"), w.unique("shop"), w.unique("web")
	for _, namespace := range []string{canal, shop, web} {
		w.create(kit.Namespace(namespace))
	}
	manifest := strings.ReplaceAll(kkpManifest, "kubermatic-addon: canal", "kubermatic-addon: "+canal)
	file := filepath.Join(folder(t, map[string]string{"canal.yaml": manifest}), "canal.yaml")
	w.program("kubectl", "", "apply", "--prune", "--filename", file, "--selector", "kubermatic-addon="+canal, "-n", canal)
	addon := w.kkpAddon(canal)
	w.program("helm", "", "install", "shop", folder(t, migratedChart(shop)), "-n", shop, "--set", "replicas=2,version=mine")
	application := w.application(shop, "shop", shop, "shop", "replicas: 2\nversion: mine\n")
	w.program("helm", "", "install", "site", folder(t, migratedChart(web)), "-n", web, "--set", "replicas=3,version=theirs")
	before := w.generations(canal, shop, web)

	plain := strings.ReplaceAll(manifest, `, labels: {kubermatic-addon: `+canal+`}`, "")
	w.publishAddon(kubermaticv1.CatalogueCustom, kubermaticv1.Addon{
		Name: kubermaticv1.AddonName(canal), TargetNamespace: canal, Versions: []kubermaticv1.AddonVersion{
			w.content("2.31.0", kubermaticv1.MethodGoTemplate, canal, map[string]string{"canal.yaml": plain}),
		},
	})
	w.offer(shop, kubermaticv1.CatalogueCustom, w.content("1.0.0", kubermaticv1.MethodHelm, shop, migratedChart(shop)))
	w.offer(web+"-addon", kubermaticv1.CatalogueCustom, w.content("1.0.0", kubermaticv1.MethodHelm, web, migratedChart(web)))
	all := map[string]string{canal + "/canal.yaml": plain} // a commit has only its own files
	for _, name := range []string{shop, web} {
		for file, text := range migratedChart(name) {
			all[name+"/"+file] = text
		}
	}
	_, err := w.sources.Commit("content", all)
	expect.NoError(t, err)
	available := given.Available(client.ObjectKey{Namespace: w.namespace, Name: kubermaticv1.AvailableCatalogue})
	available.Spec.Addons = []kubermaticv1.Addon{
		given.Addon(canal, kubermaticv1.AddonVersion{Version: "2.31.0"}), given.Addon(shop, kubermaticv1.AddonVersion{Version: "1.0.0"}),
		given.Addon(web+"-addon", kubermaticv1.AddonVersion{Version: "1.0.0"}),
	}
	w.create(available)

	call := []string{"migrate", "--map", web + "=" + web + "-addon"}
	out, notes, code := w.command(call...)
	for _, text := range []string{
		"KKP Addon " + w.namespace + "/" + canal, "ApplicationInstallation " + shop + "/shop", "Helm release " + web + "/site",
	} {
		if code != cli.ExitDone || !strings.Contains(out, text) {
			t.Errorf("exit code %d, %q is not in\n%s%s", code, text, out, notes)
		}
	}
	printed, _, _ := w.command(append(call, "-o", "yaml")...)
	if !strings.Contains(printed, "version: theirs") || !strings.Contains(printed, "paused: true") {
		t.Errorf("the YAML is\n%s", printed)
	}
	if found := w.ofCluster(); len(found) > 0 {
		t.Fatalf("installations exist before --apply: %v", found)
	}
	if out, notes, code = w.command(append(call, "--apply", "--yes")...); code != cli.ExitDone || strings.Count(out, " created") != 3 {
		t.Fatalf("exit code %d:\n%s%s", code, out, notes)
	}
	found := w.ofCluster()
	expect.HasCondition(t, w.seed, found["site"], expect.Is(kubermaticv1.ConditionApplied, "True", kubermaticv1.ReasonApplied))
	w.expectReady(found[canal], kubermaticv1.ReasonKKPAddonExists)
	w.expectReady(found["shop"], kubermaticv1.ReasonPaused)
	for _, gone := range []*unstructured.Unstructured{addon, application} {
		w.release(gone)
		expect.Delete(t, w.seed, gone)
	}
	if _, notes, code = w.command("resume", "shop"); code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, notes)
	}
	for _, name := range []string{canal, "shop"} {
		expect.HasCondition(t, w.seed, found[name], expect.Is(kubermaticv1.ConditionApplied, "True", kubermaticv1.ReasonApplied))
	}
	if diff := cmp.Diff(before, w.generations(canal, shop, web)); diff != "" {
		t.Errorf("objects (-before +after):\n%s", diff)
	}
	for name, namespace := range map[string]string{"shop": shop, "site": web} {
		if diff := cmp.Diff([]string{"1 superseded", "2 deployed"}, w.helmHistory(name, namespace)); diff != "" {
			t.Errorf("history of %s (-want +got):\n%s", name, diff)
		}
	}
	if out, _, _ = w.command(append(call, "--apply", "--yes")...); strings.Contains(out, " created") || len(w.ofCluster()) != 3 {
		t.Errorf("a second call:\n%s", out)
	}
}

// ofCluster are the installations of the cluster by name.
func (w *world) ofCluster() map[string]*kubermaticv1.AddonInstallation {
	w.t.Helper()
	var list kubermaticv1.AddonInstallationList
	expect.List(w.t, w.seed, &list, client.InNamespace(w.namespace))
	found := map[string]*kubermaticv1.AddonInstallation{}
	for i := range list.Items {
		found[list.Items[i].Name] = &list.Items[i]
	}
	return found
}
