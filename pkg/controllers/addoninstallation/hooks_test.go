package addoninstallation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/chart"
	"github.com/trellis-addons/trellis/pkg/render/gotemplate"
	"github.com/trellis-addons/trellis/test/expect"
)

// Hooks of charts. No Job controller runs in this cluster: a Job ends only when the test ends it.

// job is the template of a hook.
func job(name, events, more string) string {
	return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata:
  name: %s
  annotations: {helm.sh/hook: "%s"%s}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: work, image: "registry.example.com/work:{{ .Values.tag }}"}]}
`, name, events, more)
}

const settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {tag: '{{ .Values.tag }}'}\n"

// newHookWorld is a world that renders charts.
func newHookWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.renderers = map[string]render.Renderer{
		string(kubermaticv1.MethodHelm): chart.New(), string(kubermaticv1.MethodGoTemplate): gotemplate.New(),
	}
	return w
}

// publishChart creates or replaces an add-on that is a chart of that name, with template files by name.
func (w *world) publishChart(addon, chartName string, change func(*kubermaticv1.AddonVersion), templates map[string]string) {
	w.t.Helper()
	files := map[string]string{
		"chart/Chart.yaml": "apiVersion: v2\nname: " + chartName + "\nversion: 1.0.0\n", "chart/values.yaml": "tag: one\n",
	}
	for name, text := range templates {
		files["chart/templates/"+name+".yaml"] = text
	}
	repository := fmt.Sprintf("%s-%d", addon, time.Now().UnixNano())
	if _, err := w.sources.Commit(repository, files); err != nil {
		w.t.Fatal(err)
	}
	version := w.version(offered{version: "1.0.0"})
	version.Values = nil
	version.Template = &kubermaticv1.Template{Method: kubermaticv1.MethodHelm}
	version.Source.Git.Remote, version.Source.Git.Path = kubermaticv1.GitRemote(w.sources.GitURL+"/"+repository+".git"), "chart"
	if change != nil {
		change(&version)
	}
	w.publishVersions(addon, kubermaticv1.CatalogueCustom, []kubermaticv1.AddonVersion{version})
}

// awaitJob waits for a Job with none of these UIDs, and returns it.
func (w *world) awaitJob(object *kubermaticv1.AddonInstallation, name string, not ...types.UID) *batchv1.Job {
	w.t.Helper()
	found := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: object.Spec.TargetNamespace, Name: name}}
	return expect.Object(w.t, w.seed, found, func(found *batchv1.Job) error {
		if slices.Contains(not, found.UID) {
			return fmt.Errorf("job %s is an old one", name)
		}
		return nil
	})
}

// end ends a Job, successfully or not.
func (w *world) end(job *batchv1.Job, well bool) {
	w.t.Helper()
	now := metav1.Now()
	kinds := []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed}
	if well {
		kinds = []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete}
		job.Status.CompletionTime, job.Status.Succeeded = &now, 1
	}
	job.Status.StartTime = &now
	for _, kind := range kinds {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
			Type: kind, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", Message: "the work did not work", LastTransitionTime: now,
		})
	}
	expect.UpdateStatus(w.t, w.seed, job)
}

// has says whether an object exists.
func (w *world) has(object client.Object, namespace, name string) bool {
	w.t.Helper()
	err := w.seed.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	return err == nil
}

func (w *world) ready(object *kubermaticv1.AddonInstallation) {
	w.t.Helper()
	expect.Object(w.t, w.seed, object, func(object *kubermaticv1.AddonInstallation) error {
		if object.Status.ObservedGeneration != object.Generation {
			return fmt.Errorf("generation %d is not observed", object.Generation)
		}
		return expect.Condition(object, kubermaticv1.ConditionReady, "True", "")
	})
}

// The whole life of a release with hooks. It fails if pre-install hooks run after the objects that they precede, or at
// once instead of by weight; if hook-succeeded is ignored; if an upgrade runs the hooks of an installation; if hooks
// are in the inventory (the number of objects); and if a restarted controller recreates a running hook (another UID).
func TestHooksRunInOrder(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	w.publishChart("ordered", "ordered", nil, map[string]string{
		"settings": settings,
		"account": "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: worker\n  annotations: {helm.sh/hook: pre-install, " +
			"helm.sh/hook-weight: \"-9\", helm.sh/hook-delete-policy: \"hook-succeeded,before-hook-creation\"}\n",
		"b":    job("a-second", "pre-install,pre-upgrade", `, helm.sh/hook-weight: "2"`),
		"a":    job("z-first", "pre-install", `, helm.sh/hook-weight: "1", helm.sh/hook-delete-policy: hook-succeeded`),
		"c":    job("after", "post-install,post-upgrade", ""),
		"test": job("checked", "test", ""),
	})
	stop := w.startUntil()
	object := w.install("ordered", "")
	namespace := object.Spec.TargetNamespace

	first := w.awaitJob(object, "z-first")
	w.expectSummary(object, "False", kubermaticv1.ReasonHookRunning, "Job.batch "+namespace+"/z-first", "pre-install", "it runs")
	if !w.has(&corev1.ServiceAccount{}, namespace, "worker") {
		t.Error("the account that the hook needs is not there")
	}
	for _, early := range []client.Object{&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "a-second"}}, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}} {
		if w.has(early, namespace, early.GetName()) {
			t.Errorf("%s is there before the first hook ended", early.GetName())
		}
	}
	if image := first.Spec.Template.Spec.Containers[0].Image; image != "mirror.example.com/work:one" {
		t.Errorf("the hook runs image %q, which is not mirrored", image)
	}
	stop()
	stop = w.startUntil() // during a hook
	w.expectSummary(object, "False", kubermaticv1.ReasonHookRunning, "z-first")
	if again := w.awaitJob(object, "z-first"); again.UID != first.UID {
		t.Error("the hook was made anew")
	}
	w.end(first, true)
	second := w.awaitJob(object, "a-second")
	w.end(second, true)
	after := w.awaitJob(object, "after")
	if !w.has(&corev1.ConfigMap{}, namespace, "settings") {
		t.Error("the hook after the installation runs before it")
	}
	if w.has(&corev1.ServiceAccount{}, namespace, "worker") || w.has(&batchv1.Job{}, namespace, "z-first") {
		t.Error("what goes when its event succeeded is still there")
	}
	w.end(after, true)
	w.ready(object)
	if got := object.Status.Objects.Total; got != 2 {
		t.Errorf("%d objects, want the namespace and the settings: hooks are in no inventory", got)
	}
	if diff := cmp.Diff(&kubermaticv1.HelmReleaseState{Name: "ordered", Revision: 1, Status: "deployed"}, object.Status.Release); diff != "" {
		t.Errorf("the release (-want +got):\n%s", diff)
	}

	w.edit(object, func(object *kubermaticv1.AddonInstallation) { object.Spec.Values = raw(`{"tag":"two"}`) })
	upgraded := w.awaitJob(object, "a-second", second.UID)
	settled := &corev1.ConfigMap{}
	if w.has(settled, namespace, "settings"); settled.Data["tag"] != "one" {
		t.Errorf("the settings changed before the hook: %v", settled.Data)
	}
	w.end(upgraded, true)
	w.end(w.awaitJob(object, "after", after.UID), true)
	w.ready(object)
	if w.has(&batchv1.Job{}, namespace, "z-first") || w.has(&batchv1.Job{}, namespace, "checked") {
		t.Error("a hook of another event ran")
	}
	stop()
}

// AG23: Fails if a failed hook is not retried, if hook-failed is ignored, if a hook that succeeded runs again with the
// retry, and if an edit does not restart the event. Package hooks has the pauses between attempts.
func TestFailedHook(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	w.publishChart("failing", "failing", nil, map[string]string{
		"settings": settings,
		"a":        job("done", "pre-install", `, helm.sh/hook-weight: "1"`),
		"b":        job("broken", "pre-install", `, helm.sh/hook-weight: "2", helm.sh/hook-delete-policy: hook-failed`),
	})
	w.start()
	object := w.install("failing", "")
	namespace := object.Spec.TargetNamespace
	done := w.awaitJob(object, "done")
	w.end(done, true)
	broken := w.awaitJob(object, "broken")
	w.end(broken, false)
	message := w.expectSummary(object, "False", kubermaticv1.ReasonHookFailed, `"failing/templates/b.yaml"`, "pre-install",
		"Job.batch "+namespace+"/broken: BackoffLimitExceeded: the work did not work", "attempt 1, tried again")
	if !strings.Contains(message, kubermaticv1.AnnotationReconcileAt) || object.Status.Failures != 1 || object.Status.NextAttempt == nil {
		t.Errorf("status: %q, failures %d, next attempt %v", message, object.Status.Failures, object.Status.NextAttempt)
	}
	if object.Status.Release == nil || object.Status.Release.Status != "failed" {
		t.Errorf("the release is %v, want it failed", object.Status.Release)
	}
	expect.Gone(t, w.seed, broken)
	w.edit(object, func(object *kubermaticv1.AddonInstallation) {
		object.Annotations = map[string]string{kubermaticv1.AnnotationReconcileAt: "now"}
	})
	again := w.awaitJob(object, "broken", broken.UID)
	if kept := w.awaitJob(object, "done"); kept.UID != done.UID {
		t.Error("a hook that succeeded ran again")
	}
	w.end(again, false)
	w.expectSummary(object, "False", kubermaticv1.ReasonHookFailed, "attempt 2, ")

	w.edit(object, func(object *kubermaticv1.AddonInstallation) { object.Spec.Values = raw(`{"tag":"two"}`) })
	w.end(w.awaitJob(object, "done", done.UID), true)
	w.end(w.awaitJob(object, "broken", broken.UID, again.UID), true)
	w.ready(object)
	if got := object.Status.Release; got.Revision != 2 || got.Status != "deployed" || object.Status.Failures != 0 {
		t.Errorf("release %v after %d failures, want revision 2 deployed", got, object.Status.Failures)
	}
}

// AG23: Fails if an endless hook is awaited without a limit.
func TestHookDeadline(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	w.publishChart("hanging", "hanging", func(version *kubermaticv1.AddonVersion) {
		version.Template.Timeout = &metav1.Duration{Duration: time.Second}
	}, map[string]string{"settings": settings, "a": job("hangs", "pre-install", "")})
	w.start()
	object := w.install("hanging", "")
	w.expectSummary(object, "False", kubermaticv1.ReasonHookFailed, "/hangs", "1s", "no Pod")
}

func raw(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }
