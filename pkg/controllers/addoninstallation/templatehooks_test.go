package addoninstallation_test

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/test/expect"
)

// Hooks of go-template. As with those of charts, a Job ends when the test ends it.

// templateJob is a manifest that runs around events; more is further metadata.
func templateJob(name, events, more string) string {
	return strings.NewReplacer("helm.sh/hook:", kubermaticv1.AnnotationHook+":", ".Values.", ".Variables.").Replace(job(name, events, more))
}

// ocmJob is a Job with the marks of Open Cluster Management, and its own account.
func ocmJob(name, account string) string {
	return strings.NewReplacer(
		`annotations: {helm.sh/hook: ""}`, `labels: {open-cluster-management.io/addon-pre-delete: ""}`, ".Values.", ".Variables.",
		"restartPolicy: Never", "serviceAccountName: "+account+", restartPolicy: Never",
	).Replace(job(name, "", ""))
}

const account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: agent}\n"

// templated is a version of manifests by file name, with a tag in its values.
func (w *world) templated(version string, files map[string]string) kubermaticv1.AddonVersion {
	w.t.Helper()
	repository := "templated-" + version
	if _, err := w.sources.Commit(repository, files); err != nil {
		w.t.Fatal(err)
	}
	made := w.version(offered{version: version})
	made.Values, made.Template = raw(`{"tag":"one"}`), &kubermaticv1.Template{Method: kubermaticv1.MethodGoTemplate}
	made.Source.Git.Remote, made.Source.Git.Path = kubermaticv1.GitRemote(w.sources.GitURL+"/"+repository+".git"), ""
	return made
}

// The whole life of an add-on of go-template with hooks. It fails if a hook is applied with the objects, if early hooks
// run after the objects that they precede, if an upgrade runs the hooks of an installation, if a restarted controller
// recreates a running hook, if a removal deletes anything before its hook is complete, and if completed hooks stay.
func TestHooksOfTemplatesRunInOrder(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	files := map[string]string{
		"settings.yaml": templateSettings, "account.yaml": account,
		"a.yaml": templateJob("prepare", "pre-install", ""), "b.yaml": templateJob("check", "post-install, post-upgrade", ""),
		"c.yaml": templateJob("migrate", "pre-upgrade", ""), "d.yaml": ocmJob("farewell", "agent"),
	}
	first, second := w.templated("1.0.0", files), w.templated("1.1.0", files)
	second.Values = raw(`{"tag":"two"}`)
	w.offer("templated", kubermaticv1.CatalogueCustom, first, second)
	stop := w.startUntil()
	object := w.install("templated", "1.0.0")
	namespace := object.Spec.TargetNamespace

	prepare := w.awaitJob(object, "prepare")
	w.expectSummary(object, "False", kubermaticv1.ReasonHookRunning, "prepare of event pre-install")
	if w.has(&corev1.ConfigMap{}, namespace, "settings") {
		t.Error("objects are there before what comes before them")
	}
	stop()
	stop = w.startUntil()
	w.end(w.awaitJob(object, "prepare"), true)
	check := w.awaitJob(object, "check")
	if !w.has(&corev1.ConfigMap{}, namespace, "settings") {
		t.Error("the hook behind the objects runs before them")
	}
	w.end(check, true)
	w.ready(object)
	w.expectNoJobs(namespace)

	w.want(object, "1.1.0")
	w.end(w.awaitJob(object, "migrate"), true)
	w.end(w.awaitJob(object, "check", check.UID, prepare.UID), true)
	w.expectApplied(object, "1.1.0")
	w.ready(object)

	w.delete(object)
	failing := w.awaitJob(object, "farewell")
	stop()
	w.start()
	w.end(w.awaitJob(object, "farewell"), false)
	w.expectSummary(object, "False", kubermaticv1.ReasonRemovalBlocked, kubermaticv1.AnnotationSkipHooks+`: "true"`)
	if !w.has(&corev1.ConfigMap{}, namespace, "settings") || !w.has(&corev1.ServiceAccount{}, namespace, "agent") {
		t.Error("objects go although the hook before failed")
	}
	w.annotate(object, kubermaticv1.AnnotationReconcileAt, "now")
	w.end(w.awaitJob(object, "farewell", failing.UID), true)
	expect.Gone(t, w.seed, object)
	expect.Gone(t, w.seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
}

// expectNoJobs checks that completed hooks are deleted.
func (w *world) expectNoJobs(namespace string) {
	w.t.Helper()
	left := &batchv1.JobList{}
	expect.List(w.t, w.seed, left)
	for _, one := range left.Items {
		if one.Namespace == namespace {
			w.t.Errorf("job %s stays", one.Name)
		}
	}
}

// AG23: A removal handles hooks that can't, or need not, run. It fails if a Job waits for a deleted account, if the
// hook of an installation that was never complete runs, if one of a withdrawn version does not, and if skip-hooks is
// ignored.
func TestRemovalsWithHooksOfTemplates(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	files := map[string]string{"account.yaml": account, "d.yaml": ocmJob("farewell", "agent")}
	half := map[string]string{"account.yaml": account, "a.yaml": templateJob("prepare", "pre-install", ""), "d.yaml": ocmJob("farewell", "agent")}
	for _, name := range []string{"homeless", "withdrawn", "skipped"} {
		w.offer(name, kubermaticv1.CatalogueCustom, w.templated("1.0.0", files))
	}
	w.offer("half", kubermaticv1.CatalogueCustom, w.templated("2.0.0", half))
	w.start()
	homeless, withdrawn, skipped, unborn := w.install("homeless", ""), w.install("withdrawn", ""), w.install("skipped", ""), w.install("half", "")
	w.ready(homeless)
	w.ready(withdrawn)
	w.ready(skipped)

	w.delete(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: homeless.Spec.TargetNamespace, Name: "agent"}})
	w.delete(homeless)
	expect.Gone(t, w.seed, homeless)
	namespace := homeless.Spec.TargetNamespace
	w.expectEvent(kubermaticv1.EventHookSkipped, homeless, "pre-delete", namespace+"/farewell", `service account "agent"`)

	w.delete(skipped)
	w.end(w.awaitJob(skipped, "farewell"), false)
	w.expectSummary(skipped, "False", kubermaticv1.ReasonRemovalBlocked, "farewell")
	w.annotate(skipped, kubermaticv1.AnnotationSkipHooks, "true")
	expect.Gone(t, w.seed, skipped)

	w.awaitJob(unborn, "prepare")
	w.delete(unborn)
	expect.Gone(t, w.seed, unborn)

	w.offer("withdrawn", kubermaticv1.CatalogueCustom, w.templated("3.0.0", files))
	w.delete(withdrawn)
	w.end(w.awaitJob(withdrawn, "farewell"), true)
	expect.Gone(t, w.seed, withdrawn)
}

// TestHooksOfTemplatesAreRefused fails if a hook of a Custom add-on is written where such an add-on may not write, and
// if a manifest is applied that is no hook which could run.
func TestHooksOfTemplatesAreRefused(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	w.restrictions = catalogue.Restrictions{KubeNamespaces: true}
	outside := templateJob("outside", "pre-install", "")
	outside = strings.Replace(outside, "name: outside", "name: outside\n  namespace: kube-system", 1)
	w.offer("outside", kubermaticv1.CatalogueCustom, w.templated("1.0.0", map[string]string{"a.yaml": outside}))
	w.offer("odd", kubermaticv1.CatalogueCustom, w.templated("2.0.0", map[string]string{"a.yaml": templateJob("odd", "test", "")}))
	w.start()
	refused, odd := w.install("outside", ""), w.install("odd", "")
	w.expectSummary(refused, "False", kubermaticv1.ReasonNotAllowed, "outside")
	w.expectSummary(odd, "False", kubermaticv1.ReasonRenderFailed, `and is "test"`)
	w.expectNothing(refused)
	w.expectNothing(odd)
}

// An edit while a hook runs recreates it, however soon the edit is made. It fails if runs of two intents of one number
// and second count as one (the time of Pass.intent).
func TestAnEditRunsHooksOfTemplatesAgain(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	w.offer("edited", kubermaticv1.CatalogueCustom, w.templated("1.0.0", map[string]string{
		"a.yaml": templateJob("prepare", "pre-install", ""), "settings.yaml": templateSettings,
	}))
	w.start()
	object := w.install("edited", "")
	before := w.awaitJob(object, "prepare")
	w.edit(object, func(object *kubermaticv1.AddonInstallation) { object.Spec.Values = raw(`{"tag":"two"}`) })
	after := w.awaitJob(object, "prepare", before.UID)
	if image := after.Spec.Template.Spec.Containers[0].Image; !strings.HasSuffix(image, "/work:two") {
		t.Errorf("it runs %s", image)
	}
	w.end(after, true)
	w.ready(object)
}

const templateSettings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {tag: '{{ .Variables.tag }}'}\n"

// Hooks that are no longer awaited are deleted: a running one with the next version, which lacks it, and one that
// failed before a removal with the removal. It fails without the calls of Clear in Begin and PreDelete.
func TestHooksOfTemplatesLeaveNothing(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	with := map[string]string{"settings.yaml": templateSettings, "a.yaml": templateJob("migrate", "pre-upgrade", "")}
	without := map[string]string{"settings.yaml": templateSettings, "b.yaml": templateJob("other", "pre-upgrade", "")}
	versions := []kubermaticv1.AddonVersion{
		w.templated("1.0.0", map[string]string{"settings.yaml": templateSettings}), w.templated("1.1.0", with), w.templated("1.2.0", without),
	}
	for i := range versions {
		versions[i].Values = raw(`{"tag":"` + versions[i].Version + `"}`)
	}
	w.offer("leftover", kubermaticv1.CatalogueCustom, versions...)
	w.start()
	object := w.install("leftover", "1.0.0")
	w.ready(object)
	w.create(configMap(object.Spec.TargetNamespace, "foreign")) // so that the namespace stays
	w.want(object, "1.1.0")
	running := w.awaitJob(object, "migrate")
	w.want(object, "1.2.0")
	other := w.awaitJob(object, "other")
	expect.Gone(t, w.seed, running)
	w.end(other, false)
	w.expectSummary(object, "False", kubermaticv1.ReasonHookFailed, "other")
	w.delete(object)
	expect.Gone(t, w.seed, object)
	w.expectNoJobs(object.Spec.TargetNamespace)
}

// TestAnObjectThatBecameAHookGivesWayToTheRemoval fails if a removal is blocked by an object of the add-on itself,
// which the newest version has as a hook and which was not pruned yet.
func TestAnObjectThatBecameAHookGivesWayToTheRemoval(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	plain := strings.Replace(ocmJob("farewell", "agent"), `labels: {open-cluster-management.io/addon-pre-delete: ""}`, "labels: {a: b}", 1)
	never := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: never}\nspec:\n  selector: {matchLabels: {app: never}}\n" +
		"  template: {metadata: {labels: {app: never}}, spec: {containers: [{name: never, image: never}]}}\n"
	w.offer("became", kubermaticv1.CatalogueCustom,
		w.templated("1.0.0", map[string]string{"account.yaml": account, "d.yaml": plain}),
		w.templated("1.1.0", map[string]string{"account.yaml": account, "d.yaml": ocmJob("farewell", "agent"), "e.yaml": never}))
	w.start()
	object := w.install("became", "1.0.0")
	w.expectApplied(object, "1.0.0")
	asObject := w.awaitJob(object, "farewell")
	w.want(object, "1.1.0")
	w.expectApplied(object, "1.1.0")
	w.delete(object)
	w.end(w.awaitJob(object, "farewell", asObject.UID), true)
	expect.Gone(t, w.seed, object)
}
