package addoninstallation_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	kit "github.com/trellis-addons/trellis/test/world"
)

const (
	// methodDropped is of the first version only, methodAdded of the later ones.
	methodDropped = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: dropped}\ndata: {of: one}\n"
	methodAdded   = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: added}\ndata: {of: two}\n"
)

// asTemplate are the objects of a chart for go-template.
func asTemplate(objects string) map[string]string {
	return map[string]string{"all.yaml": strings.ReplaceAll(objects, ".Values.", ".Variables.")}
}

// asChart are the same objects in a chart.
func asChart(version, objects string) map[string]string {
	return map[string]string{"Chart.yaml": "apiVersion: v2\nname: web\nversion: " + version + "\n", "templates/all.yaml": objects}
}

// eachMethod runs a test with both methods, each in a world with a clock and a comparison every three seconds.
func eachMethod(t *testing.T, test func(t *testing.T, w *world, method kubermaticv1.Method)) {
	t.Helper()
	for _, method := range []kubermaticv1.Method{kubermaticv1.MethodGoTemplate, kubermaticv1.MethodHelm} {
		t.Run(string(method), func(t *testing.T) {
			t.Parallel()
			w := newHookWorld(t)
			w.clock, w.driftInterval = kit.RunningClock(t), 3*time.Second
			test(t, w, method)
		})
	}
}

// addonsBy is addons with either method.
func (w *world) addonsBy(method kubermaticv1.Method, files map[string]string) func(version, addon string) kubermaticv1.AddonVersion {
	w.t.Helper()
	if method == kubermaticv1.MethodGoTemplate {
		return w.addons(files)
	}
	charts := map[string]map[string]string{}
	for name, text := range files {
		charts[name] = asChart("1.0.0", strings.ReplaceAll(text, ".Variables.", ".Values."))
	}
	return w.charts(charts)
}

// methods is a version with a ConfigMap and a ReplicaSet, and the given other objects, of a method.
func (w *world) methods(version string, method kubermaticv1.Method, more string) kubermaticv1.AddonVersion {
	w.t.Helper()
	objects := strings.NewReplacer("{{ .Values.replicas }}", "0", "'{{ .Values.app }}'", "web").Replace(settingsTwin) + more
	files := asTemplate(objects)
	if method == kubermaticv1.MethodHelm {
		files = asChart(version, objects)
	}
	return w.content(version, method, fmt.Sprintf("methods-%s/%s", w.id, version), files)
}

// born distinguishes an object from a recreated one of its name.
type born struct {
	UID  types.UID
	Time time.Time
	// Generation counts changes of the spec.
	Generation int64
}

// labelled are the objects of an installation's namespace that carry our label.
func (w *world) labelled(object *kubermaticv1.AddonInstallation) map[string]client.Object {
	w.t.Helper()
	var configs corev1.ConfigMapList
	var sets appsv1.ReplicaSetList
	where := []client.ListOption{client.InNamespace(object.Spec.TargetNamespace), client.HasLabels{kubermaticv1.LabelInstallation}}
	expect.NoError(w.t, errors.Join(w.seed.List(w.t.Context(), &configs, where...), w.seed.List(w.t.Context(), &sets, where...)))
	found := map[string]client.Object{}
	for i := range configs.Items {
		found[configs.Items[i].Name] = &configs.Items[i]
	}
	for i := range sets.Items {
		found[sets.Items[i].Name] = &sets.Items[i]
	}
	return found
}

func births(objects map[string]client.Object) map[string]born {
	found := map[string]born{}
	for name, object := range objects {
		found[name] = born{object.GetUID(), object.GetCreationTimestamp().UTC(), object.GetGeneration()}
	}
	return found
}

// expectBirths waits until exactly these objects exist; pruning is the last step of an upgrade.
func (w *world) expectBirths(object *kubermaticv1.AddonInstallation, want map[string]born) {
	w.t.Helper()
	expect.Eventually(w.t, expect.Patience, func() error {
		if diff := cmp.Diff(want, births(w.labelled(object))); diff != "" {
			return fmt.Errorf("objects (-want +got):\n%s", diff)
		}
		return nil
	})
}

// expectMarks checks that every object carries Helm's marks for a release, or none of them if release is "".
func (w *world) expectMarks(object *kubermaticv1.AddonInstallation, release string) {
	w.t.Helper()
	want := map[string]string{}
	if release != "" {
		want = map[string]string{
			"app.kubernetes.io/managed-by": "Helm", "meta.helm.sh/release-name": release,
			"meta.helm.sh/release-namespace": object.Spec.TargetNamespace,
		}
	}
	for name, live := range w.labelled(object) {
		have := map[string]string{}
		for _, words := range []map[string]string{live.GetLabels(), live.GetAnnotations()} {
			for key, value := range words {
				if key == "app.kubernetes.io/managed-by" || strings.Contains(key, "helm.sh/") {
					have[key] = value
				}
			}
		}
		if diff := cmp.Diff(want, have); diff != "" {
			w.t.Errorf("Helm's marks on %q (-want +got):\n%s", name, diff)
		}
	}
}

// helmSecrets counts the Secrets of releases in an installation's namespace.
func (w *world) helmSecrets(object *kubermaticv1.AddonInstallation) int {
	w.t.Helper()
	var list corev1.SecretList
	expect.List(w.t, w.seed, &list, client.InNamespace(object.Spec.TargetNamespace), client.MatchingLabels{"owner": "helm"})
	return len(list.Items)
}

// A method changes between two versions, there and back: objects are adopted, none is recreated. It fails if Helm's
// marks are not set (Options.Helm taken out of prepare of pkg/install/rendering), if a version of another method begins with an
// empty inventory (intent without the known objects: objects of the previous version alone stay), and if the release
// stays when no release follows it (previousRelease only for another name).
func TestMethodChangesBetweenVersions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.renderers = bothMethods()
	w.start()
	first := w.methods("1.0.0", kubermaticv1.MethodGoTemplate, methodDropped)
	w.offer("methods", kubermaticv1.CatalogueCustom, first)
	object := w.install("methods", "")
	namespace := object.Spec.TargetNamespace
	w.expectInstalled(object, "1.0.0", "")
	want := births(w.labelled(object))
	if len(want) != 3 {
		t.Fatalf("version 1.0.0 has %v", want)
	}

	second := w.methods("2.0.0", kubermaticv1.MethodHelm, methodAdded)
	w.offer("methods", kubermaticv1.CatalogueCustom, first, second)
	w.expectInstalled(object, "2.0.0", "")
	w.expectRelease(object, "methods", 1)
	delete(want, "dropped")
	want["added"] = births(w.labelled(object))["added"]
	w.expectBirths(object, want)
	w.expectMarks(object, "methods")
	if listed := w.program("helm", "", "list", "--all", "-q", "-n", namespace); listed != "methods\n" {
		t.Errorf("helm list shows %q", listed)
	}
	if diff := cmp.Diff([]string{"1 deployed"}, w.helmHistory("methods", namespace)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}

	third := w.methods("3.0.0", kubermaticv1.MethodGoTemplate, methodAdded)
	w.offer("methods", kubermaticv1.CatalogueCustom, first, second, third)
	w.expectInstalled(object, "3.0.0", "")
	expect.Object(t, w.seed, object, func(object *kubermaticv1.AddonInstallation) error {
		if count := w.helmSecrets(object); count > 0 || object.Status.Release != nil {
			return fmt.Errorf("%d Secrets of the release are left, the status says %v", count, object.Status.Release)
		}
		return nil
	})
	w.expectBirths(object, want)
	w.expectMarks(object, "")
	if listed := w.program("helm", "", "list", "--all", "-q", "-n", namespace); strings.TrimSpace(listed) != "" {
		t.Errorf("helm list shows %q", listed)
	}

	w.delete(object)
	expect.Gone(t, w.seed, object)
	if left := births(w.labelled(object)); len(left) > 0 || w.helmSecrets(object) > 0 {
		t.Errorf("left: %v, and %d Secrets of a release", left, w.helmSecrets(object))
	}
}
