package addoninstallation_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// yamlOfValues is YAML of authors and users, each with a map t.
var yamlOfValues = map[string]string{
	"override-behind": "base: &b {x: 1, z: 2}\nt: {<<: *b, x: 3}\n",
	"override-before": "base: &b {x: 1, z: 2}\nt: {x: 3, <<: *b}\n",
	"several":         "base: &b {x: 1, z: 2}\nother: &o {x: 7, y: 8}\nt: {<<: [*b, *o], z: 9}\n",
	"nested":          "base: &b {x: 1, z: 2}\nt: &u\n  <<: *b\n  below: {<<: *b, z: 5}\n  x: 4\n",
	"closed":          "t: {x: 3}\n---\n",
	"closed-by-dots":  "---\nt: {x: 3}\n...\n",
}

// showing prints map t of a chart's values.
const showing = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shown}\ndata:\n  t: '{{ .Values.t | toJson }}'\n"

// Values of a ConfigMap, of a valuesTemplate of the catalogue and of one of the installation are read as by `helm
// template -f`. It fails if a merge key with an override, or a closed document, is refused in any of these places or
// read otherwise.
func TestValuesAreReadAsHelmReadsThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.renderers = bothMethods()
	chart := map[string]string{"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n", "templates/shown.yaml": showing}
	version := w.content("1.0.0", kubermaticv1.MethodHelm, "shown", chart)
	w.offer("plain", kubermaticv1.CatalogueCustom, version)
	for name, text := range yamlOfValues {
		templated := *version.DeepCopy()
		templated.ValuesTemplate = text
		w.offer("tpl-"+name, kubermaticv1.CatalogueCustom, templated)
	}
	w.start()
	made := map[string]*kubermaticv1.AddonInstallation{}
	for name, text := range yamlOfValues {
		w.create(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: w.namespace, Name: name, Labels: map[string]string{kubermaticv1.LabelUse: kubermaticv1.UseValues},
			},
			Data: map[string]string{"values.yaml": text},
		})
		for how, spec := range map[string]kubermaticv1.AddonInstallationSpec{
			"from": {AddonRef: kubermaticv1.AddonReference{Name: "plain"}, ValuesFrom: []kubermaticv1.ValuesSource{
				{ConfigMapRef: &kubermaticv1.KeyReference{Name: name, Key: "values.yaml"}},
			}},
			"own": {AddonRef: kubermaticv1.AddonReference{Name: "plain"}, ValuesTemplate: text},
			"tpl": {AddonRef: kubermaticv1.AddonReference{Name: kubermaticv1.AddonName("tpl-" + name)}},
		} {
			object := &kubermaticv1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: how + "-" + name}, Spec: spec}
			object.Spec.TargetNamespace, object.Spec.CreateNamespace = w.unique(how+"-"+name), true
			w.create(object)
			made[how+" "+name] = object
		}
	}
	for name, text := range yamlOfValues {
		want := w.shownByHelm(chart, text)
		for _, how := range []string{"from", "own", "tpl"} {
			object := made[how+" "+name]
			w.expectReady(object, kubermaticv1.ReasonReady)
			if got := w.configMaps(object.Spec.TargetNamespace)["shown"].Data["t"]; got != want {
				t.Errorf("%s: %s has t %s, and helm has %s", name, how, got, want)
			}
		}
	}
}

// shownByHelm is the chart's output of values with `helm template -f`.
func (w *world) shownByHelm(chart map[string]string, text string) string {
	w.t.Helper()
	file := filepath.Join(w.t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	var rendered corev1.ConfigMap
	output := w.program("helm", "", "template", "web", folder(w.t, chart), "-f", file)
	if err := yaml.Unmarshal([]byte(output), &rendered); err != nil || rendered.Data["t"] == "" {
		w.t.Fatalf("helm renders %s, %v", output, err)
	}
	return rendered.Data["t"]
}

// Manifests are read as by kubectl. It fails if a merge key with an override, or a closed document, is refused or read
// otherwise.
func TestManifestsAreReadAsKubectlReadsThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	manifests := map[string]string{
		"mergeov": `{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, labels: &l {team: a}, annotations: {<<: *l, team: b}}, data: {a: "1"}}`,
		"mergeov-before": `{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, labels: &l {team: a, tier: c}, annotations: {team: b, <<: *l}}, ` +
			`data: {a: "1"}}`,
		"several": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: NAME\n  labels: &l {team: a, tier: c}\n" +
			"  annotations: &a {owner: x, team: z}\ndata:\n  <<: [*l, *a]\n  tier: d\n",
		"nested": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: NAME\n  labels: &l {team: a}\n" +
			"  annotations: &a\n    <<: *l\n    team: b\n    more: c\ndata:\n  <<: *a\n  more: d\n",
		"closed": "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\ndata: {a: \"1\"}\n---\n",
		"anchor": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: &n NAME, labels: {name: *n}}\ndata: {name: *n}\n",
	}
	files := map[string]string{}
	for name, text := range manifests {
		files[name] = strings.ReplaceAll(text, "NAME", name)
	}
	addons := w.addons(files)
	for name := range manifests {
		w.offer(name, kubermaticv1.CatalogueCustom, addons("1.0.0", name))
	}
	w.start()
	for name := range manifests {
		w.install(name, "")
	}
	for name, text := range files {
		object := &kubermaticv1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
		w.expectReady(object, kubermaticv1.ReasonReady)
		want := w.madeByKubectl(text)
		got := w.configMaps(object.Spec.TargetNamespace)[name]
		for _, part := range []struct {
			what      string
			want, got map[string]string
		}{{"data", want.Data, got.Data}, {"labels", want.Labels, got.Labels}, {"annotations", want.Annotations, got.Annotations}} {
			for key := range part.got { // our own keys
				if strings.Contains(key, "kubermatic") {
					delete(part.got, key)
				}
			}
			if diff := cmp.Diff(part.want, part.got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: %s (-kubectl +got):\n%s", name, part.what, diff)
			}
		}
	}
}

// madeByKubectl is the object that kubectl reads from a manifest.
func (w *world) madeByKubectl(text string) (made corev1.ConfigMap) {
	w.t.Helper()
	file := filepath.Join(w.t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	output := w.program("kubectl", "", "create", "--dry-run=client", "-o", "json", "-f", file)
	if err := json.Unmarshal([]byte(output), &made); err != nil {
		w.t.Fatal(fmt.Errorf("kubectl says %s: %w", output, err))
	}
	return made
}
