package addoninstallation_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// handMade is the web chart in a version that a user installs by hand: it has a ConfigMap and a hook of its own.
func handMade(version, only string) map[string]string {
	files := webChart(version, only)
	files["templates/hook.yaml"] = hookMap(only+"-hook", "pre-upgrade")
	return files
}

// expectHelm waits until the helm program shows one deployed release, with the chart and the values of the installed
// version.
func (w *world) expectHelm(name, namespace, version string, history ...string) {
	w.t.Helper()
	expect.Eventually(w.t, expect.Patience, func() error {
		if diff := cmp.Diff(history, w.helmHistory(name, namespace)); diff != "" {
			return fmt.Errorf("history (-want +got):\n%s", diff)
		}
		return nil
	})
	var listed []struct{ Name, Revision, Status, Chart string }
	expect.NoError(w.t, json.Unmarshal([]byte(w.program("helm", "", "list", "-n", namespace, "-o", "json")), &listed))
	if len(listed) != 1 || listed[0].Status != "deployed" || listed[0].Chart != "web-"+version || listed[0].Revision != fmt.Sprint(len(history)) {
		w.t.Errorf("helm list: %+v", listed)
	}
	if values := w.program("helm", "", "get", "values", name, "-n", namespace, "-o", "json"); !strings.Contains(values, version) {
		w.t.Errorf("helm get values: %s", values)
	}
}

// Changes by a manual `helm upgrade` and `helm rollback` are reported and reverted, in the cluster and in helm's view.
// It fails if revisions after ours are not looked for (followByHand, byHandBefore and followByHandLast left out): two
// revisions stay deployed, objects of the other one stay, and an upgrade with the same objects and hooks is refused.
func TestRevisionsMadeByHand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.renderers = bothMethods()
	w.offer("byhand", kubermaticv1.CatalogueCustom, w.content("1.0.0", kubermaticv1.MethodHelm, "one", webChart("1.0.0")))
	stop := w.startUntil()
	object := w.install("byhand", "")
	namespace := object.Spec.TargetNamespace
	w.expectInstalled(object, "1.0.0", "")
	before := uids(w.configMaps(namespace))

	w.program("helm", "", "upgrade", "byhand", folder(t, handMade("9.0.0", "extra")), "-n", namespace, "--set", "version=9.0.0")
	w.annotate(object, kubermaticv1.AnnotationReconcileAt, "one")
	w.expectHelm("byhand", namespace, "1.0.0", "1 superseded", "2 superseded", "3 deployed")
	expect.Eventually(t, expect.Patience, func() error {
		if diff := cmp.Diff(before, uids(w.configMaps(namespace))); diff != "" {
			return fmt.Errorf("ConfigMaps (-before +now):\n%s", diff)
		}
		if version := w.configMaps(namespace)["settings"].Data["version"]; version != "1.0.0" {
			return fmt.Errorf("settings of version %q", version)
		}
		return nil
	})
	w.expectRelease(object, "byhand", 3)
	w.expectEvent(kubermaticv1.EventReleaseChanged, object, `"byhand"`, "up to 2", "pruned: ConfigMap "+namespace+"/extra", "revision 3")

	stop()
	w.program("helm", "", "rollback", "byhand", "2", "-n", namespace)
	stop = w.startUntil()
	w.expectHelm("byhand", namespace, "1.0.0", "1 superseded", "2 superseded", "3 superseded", "4 superseded", "5 deployed")
	w.expectGone(namespace, "extra", "extra-hook")

	stop()
	w.program("helm", "", "upgrade", "byhand", folder(t, handMade("9.1.0", "later")), "-n", namespace, "--set", "version=9.1.0")
	next := webChart("1.1.0", "later")
	next["templates/hook.yaml"] = hookMap("later-hook", "pre-upgrade")
	w.offer("byhand", kubermaticv1.CatalogueCustom, w.content("1.1.0", kubermaticv1.MethodHelm, "next", next))
	w.edit(object, func(object *kubermaticv1.AddonInstallation) { object.Spec.AddonRef.Version = "1.1.0" })
	stop = w.startUntil()
	w.expectInstalled(object, "1.1.0", "")
	expect.Eventually(t, expect.Patience, func() error { // at 7 already, if the first reconciliation does not see 1.1.0 yet
		history := w.helmHistory("byhand", namespace)
		deployed := slices.DeleteFunc(slices.Clone(history), func(line string) bool { return strings.HasSuffix(line, " superseded") })
		if len(history) < 7 || !slices.Equal(deployed, history[len(history)-1:]) {
			return fmt.Errorf("history %q", history)
		}
		return nil
	})

	stop()
	w.program("helm", "", "upgrade", "byhand", folder(t, handMade("9.2.0", "last")), "-n", namespace, "--set", "version=9.2.0")
	w.start()
	expect.Delete(t, w.seed, object)
	expect.Gone(t, w.seed, object)
	w.expectGone(namespace, "last", "last-hook", "settings")
	var left corev1.SecretList
	if err := w.seed.List(t.Context(), &left, client.InNamespace(namespace), client.MatchingLabels{"owner": "helm"}); err != nil || len(left.Items) > 0 {
		t.Errorf("%d Secrets of the release are left, %v", len(left.Items), err)
	}
}

// helmSecretOf is the Secret of a release with the given data.
func helmSecretOf(t *testing.T, name, namespace string, revision int, says map[string]any) *corev1.Secret {
	t.Helper()
	var text bytes.Buffer
	encoder := base64.NewEncoder(base64.StdEncoding, &text)
	packer := gzip.NewWriter(encoder)
	expect.NoError(t, errors.Join(json.NewEncoder(packer).Encode(says), packer.Close(), encoder.Close()))
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprintf("sh.helm.release.v1.%s.v%d", name, revision),
			Labels: map[string]string{"owner": "helm", "name": name, "status": "deployed", "version": fmt.Sprint(revision)},
		},
		Type: "helm.sh/release.v1", Data: map[string][]byte{"release": text.Bytes()},
	}
}

func (w *world) expectGone(namespace string, names ...string) {
	w.t.Helper()
	expect.Eventually(w.t, expect.Patience, func() error {
		for name := range w.configMaps(namespace) {
			if slices.Contains(names, name) {
				return fmt.Errorf("ConfigMap %q is there", name)
			}
		}
		return nil
	})
}

// A tenant writes a later revision of a release, which names unmarked objects, a Namespace, and a hook that is none. It
// fails if any of them is deleted (a guard of IsLeftover taken out).
func TestForgedRevisionsTakeNothingAlong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.renderers = bothMethods()
	w.offer("forged", kubermaticv1.CatalogueCustom, w.content("1.0.0", kubermaticv1.MethodHelm, "forged", webChart("1.0.0")))
	w.start()
	object := w.install("forged", "")
	namespace := object.Spec.TargetNamespace
	w.expectInstalled(object, "1.0.0", "")
	w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "unmarked"}})
	w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "no-hook"}})
	manifest := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: unmarked}\n" +
		"---\napiVersion: v1\nkind: Namespace\nmetadata: {name: " + namespace + "}\n"
	w.create(helmSecretOf(t, "forged", namespace, 2, map[string]any{
		"name": "forged", "namespace": namespace, "version": 2, "info": map[string]any{"status": "deployed"}, "manifest": manifest,
		"hooks": []any{map[string]any{"manifest": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: no-hook}\n"}},
	}))
	w.annotate(object, kubermaticv1.AnnotationReconcileAt, "one")
	w.expectRelease(object, "forged", 3)
	for _, name := range []string{"unmarked", "no-hook", "settings"} {
		if _, stays := w.configMaps(namespace)[name]; !stays {
			t.Errorf("ConfigMap %q is gone", name)
		}
	}
	w.expectHelm("forged", namespace, "1.0.0", "1 superseded", "2 superseded", "3 deployed")
}

// A chart that contains a definition, and checks whether its group is served, is adopted with one revision. It fails if
// groups that the chart itself contains count as served (bringsItself of pkg/install/rendering left out): objects rendered with
// them are removed with a second revision.
func TestOwnDefinitionsAreNotServedBefore(t *testing.T) {
	// Not parallel: its inputs have all kinds that the API server serves, and other tests add kinds.
	w := newWorld(t)
	w.renderers = bothMethods()
	group := fmt.Sprintf("brought-%s.example.com", w.id)
	w.removeAtTheEnd(definitionNamed("things." + group))
	files := webChart("1.0.0")
	files["templates/definition.yaml"] = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things." + group + "}\n" +
		"spec:\n  group: " + group + "\n  scope: Namespaced\n  names: {plural: things, singular: thing, kind: Thing, listKind: ThingList}\n" +
		"  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]\n"
	files["templates/seen.yaml"] = "{{ if .Capabilities.APIVersions.Has \"" + group + "/v1\" }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: seen}\n{{ end }}\n"
	namespace := w.unique("brought")
	w.program("helm", "", "install", "brought", folder(t, files), "-n", namespace, "--create-namespace")
	w.offer("brought", kubermaticv1.CatalogueCustom, w.content("1.0.0", kubermaticv1.MethodHelm, "brought", files))
	w.start()
	object := w.install("brought", "")
	w.adopt(object)
	w.expectInstalled(object, "1.0.0", "")
	inputs := object.Status.LastApplied.Inputs
	w.annotate(object, kubermaticv1.AnnotationReconcileAt, "one")
	w.expectHelm("brought", namespace, "1.0.0", "1 superseded", "2 deployed")
	expect.Read(t, w.seed, object)
	if object.Status.LastApplied.Inputs != inputs {
		t.Error("the inputs changed once it was applied")
	}
	if _, made := w.configMaps(namespace)["seen"]; made {
		t.Error("it was rendered with its own group")
	}
}
