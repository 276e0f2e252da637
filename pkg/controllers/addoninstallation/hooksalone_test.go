package addoninstallation_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/lab"
)

// hookFiles are a Job that is a hook after install and upgrade, by either method.
func hookFiles(method kubermaticv1.Method) map[string]string {
	annotation := "helm.sh/hook"
	if method == kubermaticv1.MethodGoTemplate {
		annotation = kubermaticv1.AnnotationHook
	}
	return map[string]string{"hook.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: migrate\n  annotations: {" + annotation +
		": \"post-install,post-upgrade\"}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: \"example.com/a:1\"}]}}}\n"}
}

// expectVersionReady waits until an installation is Ready with that version.
func (w *world) expectVersionReady(object *kubermaticv1.AddonInstallation, version string) {
	w.t.Helper()
	expect.Object(w.t, w.seed, object, func(object *kubermaticv1.AddonInstallation) error {
		if object.Status.Version != version {
			return fmt.Errorf("version %q is applied, want %q", object.Status.Version, version)
		}
		return expect.Condition(object, kubermaticv1.ConditionReady, "True", kubermaticv1.ReasonReady)
	})
}

// Red when an add-on of hooks alone is refused, when its hook does not run, and when a version of which only the hook remains does not come.
func TestAnAddonMayHaveHooksAlone(t *testing.T) {
	t.Parallel()
	for _, method := range []kubermaticv1.Method{kubermaticv1.MethodGoTemplate, kubermaticv1.MethodHelm} {
		for _, made := range []bool{true, false} {
			t.Run(string(method), func(t *testing.T) {
				t.Parallel()
				w := newHookWorld(t)
				w.start()
				both := hookFiles(method)
				both["settings.yaml"] = lab.Settings
				w.migrated("alone", method, hookFiles(method), both, hookFiles(method))
				object := &kubermaticv1.AddonInstallation{
					ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "alone"},
					Spec: kubermaticv1.AddonInstallationSpec{
						AddonRef:        kubermaticv1.AddonReference{Name: "alone", Version: "1.0.0"},
						TargetNamespace: w.unique("alone"), CreateNamespace: made,
					},
				}
				if !made {
					w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: object.Spec.TargetNamespace}})
				}
				w.create(object)
				job := w.awaitJob(object, "migrate")
				w.end(job, true)
				w.expectVersionReady(object, "1.0.0")
				for _, version := range []string{"2.0.0", "3.0.0"} {
					w.want(object, version)
					job = w.awaitJob(object, "migrate", job.UID)
					w.end(job, true)
					w.expectVersionReady(object, version)
				}
				settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: object.Spec.TargetNamespace, Name: "settings"}}
				expect.Gone(t, w.seed, settings)
			})
		}
	}
}

// Red when a chart that renders to nothing is refused or makes something, when it does not follow its versions to a chart with objects, and when
// these go without an approval once the chart renders to nothing again.
func TestAChartThatRendersToNothingIsReady(t *testing.T) {
	t.Parallel()
	for name, nothing := range map[string]map[string]string{
		"no template":      {},
		"turned off":       {"off.yaml": "{{- if .Values.show }}\n" + lab.Settings + "\n{{- end }}\n"},
		"notes and helper": {"NOTES.txt": "hello", "_helpers.tpl": `{{ define "x" }}{{ end }}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newHookWorld(t)
			w.start()
			w.migrated("nothing", kubermaticv1.MethodHelm, nothing, map[string]string{"settings.yaml": lab.Settings}, nothing)
			object := w.install("nothing", "1.0.0")
			w.expectSummary(object, "True", kubermaticv1.ReasonReady, "has nothing to apply for this cluster")
			w.expectRendered(object, kubermaticv1.ReasonNothingToApply)
			expect.Gone(t, w.seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: object.Spec.TargetNamespace}})
			w.want(object, "2.0.0")
			w.expectVersionReady(object, "2.0.0")
			w.settings(object)
			w.want(object, "3.0.0")
			w.expectSummary(object, "False", kubermaticv1.ReasonNoManifests, "renders to nothing for this cluster any more")
			w.settings(object)
			w.delete(object)
			expect.Gone(t, w.seed, object)
		})
	}
}
