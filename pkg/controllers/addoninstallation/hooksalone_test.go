package addoninstallation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/lab"
)

// hookFiles are a Job that is a hook after install and upgrade, for either method.
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

// TestAnAddonMayHaveHooksAlone fails if an add-on that only has hooks is refused, if its hook does not run, and if a
// version with only a remaining hook is not applied.
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
				object := given.Installation(w.namespace, "alone", "alone", w.unique("alone"), given.In("1.0.0"))
				object.Spec.CreateNamespace = made
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

// TestAChartThatRendersToNothingIsReady fails if a chart that renders to nothing is refused or creates an object, if it
// does not follow its versions to a chart with objects, and if these are removed without an approval once the chart
// renders to nothing again.
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
			w.expectSummary(object, "True", kubermaticv1.ReasonReady, "nothing to apply")
			w.expectRendered(object, kubermaticv1.ReasonNothingToApply)
			expect.Gone(t, w.seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: object.Spec.TargetNamespace}})
			w.want(object, "2.0.0")
			w.expectVersionReady(object, "2.0.0")
			w.settings(object)
			w.want(object, "3.0.0")
			w.expectSummary(object, "False", kubermaticv1.ReasonNoManifests, "no longer renders")
			w.settings(object)
			w.delete(object)
			expect.Gone(t, w.seed, object)
		})
	}
}

// hookOf is hookFiles with other events and another image.
func hookOf(method kubermaticv1.Method, events, image string) map[string]string {
	files := hookFiles(method)
	files["hook.yaml"] = strings.NewReplacer("post-install,post-upgrade", events, "a:1", image).Replace(files["hook.yaml"])
	return files
}

// Other add-ons that only have hooks. It fails if one without an upgrade event waits for a hook, or runs one; if a
// ConfigMap as the only hook is missing; and if a failed hook counts as run, or does not run again on request.
func TestHooksAloneOfEachKind(t *testing.T) {
	t.Parallel()
	eachMethod(t, func(t *testing.T, w *world, method kubermaticv1.Method) {
		const config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: told, annotations: {helm.sh/hook: post-install}}\n"
		w.migrated("before", method, hookOf(method, "pre-install", "a:1"), hookOf(method, "pre-install", "a:2"))
		w.migrated("hookcm", method, map[string]string{"told.yaml": config})
		w.migrated("removed", method, hookOf(method, "pre-delete", "a:1"))
		w.migrated("failing", method, hookOf(method, "pre-install,post-upgrade", "a:1"), hookOf(method, "post-install,pre-upgrade", "a:1"))
		w.start()

		before := w.install("before", "1.0.0")
		job := w.awaitJob(before, "migrate")
		w.end(job, true)
		w.expectVersionReady(before, "1.0.0")
		w.want(before, "2.0.0")
		w.expectVersionReady(before, "2.0.0")
		if now := (&batchv1.Job{}); w.has(now, before.Spec.TargetNamespace, "migrate") && now.UID != job.UID {
			t.Error("a hook of event pre-install runs at an upgrade")
		}

		if method == kubermaticv1.MethodHelm { // hooks of go-template are Jobs and Pods
			hookcm := w.install("hookcm", "")
			w.expectVersionReady(hookcm, "1.0.0")
			if !w.has(&corev1.ConfigMap{}, hookcm.Spec.TargetNamespace, "told") {
				t.Error("the only hook, a ConfigMap, is not there")
			}
		}

		removed := w.install("removed", "")
		w.expectVersionReady(removed, "1.0.0")
		w.deleteAll(removed)
		w.end(w.awaitJob(removed, "migrate"), true)
		expect.Gone(t, w.seed, removed)

		failing := w.install("failing", "1.0.0")
		job = w.awaitJob(failing, "migrate")
		w.end(job, false)
		w.expectReady(failing, kubermaticv1.ReasonHookFailed, "of event pre-install")
		w.annotate(failing, kubermaticv1.AnnotationReconcileAt, "now")
		job = w.awaitJob(failing, "migrate", job.UID)
		w.end(job, true)
		w.expectVersionReady(failing, "1.0.0")
		w.want(failing, "2.0.0")
		w.end(w.awaitJob(failing, "migrate", job.UID), false)
		w.expectReady(failing, kubermaticv1.ReasonHookFailed, "of event pre-upgrade")
	})
}

// An atomic version that only has hooks, one of which fails, is rolled back. It fails if the failed version stays, or
// if the previous one does not count as installed again.
func TestAtomicHooksAloneGiveWay(t *testing.T) {
	t.Parallel()
	eachMethod(t, func(t *testing.T, w *world, method kubermaticv1.Method) {
		w.migrated("atomic", method, hookOf(method, "post-install", "a:1"), hookOf(method, "post-upgrade", "a:1"))
		catalogue := &kubermaticv1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: w.catalogue, Name: "atomic"}}
		expect.Read(t, w.seed, catalogue)
		versions := catalogue.Spec.Addons[0].Versions
		for at := range versions {
			versions[at].Template.Atomic, versions[at].Template.Timeout = true, &metav1.Duration{Duration: time.Minute}
		}
		w.offer("atomic", kubermaticv1.CatalogueCustom, versions...)
		w.start()
		object := w.install("atomic", "1.0.0")
		job := w.awaitJob(object, "migrate")
		w.end(job, true)
		w.expectVersionReady(object, "1.0.0")
		w.want(object, "2.0.0")
		w.end(w.awaitJob(object, "migrate", job.UID), false)
		w.hurry(100, func() {
			w.expectReady(object, kubermaticv1.ReasonRolledBack, `"2.0.0" failed`, `back to version "1.0.0"`)
		})
		w.expectRevisions(object, "1 Applied 1.0.0", "2 Applied 2.0.0", "3 Applied 1.0.0 for 1 after 2")
	})
}
