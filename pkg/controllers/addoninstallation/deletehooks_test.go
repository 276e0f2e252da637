package addoninstallation_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// delete requests the removal of an installation.
func (w *world) delete(object client.Object) {
	w.t.Helper()
	expect.Delete(w.t, w.seed, object)
}

// annotate sets an annotation of an installation.
func (w *world) annotate(object *kubermaticv1.AddonInstallation, key, value string) {
	w.t.Helper()
	w.edit(object, func(object *kubermaticv1.AddonInstallation) {
		metav1.SetMetaDataAnnotation(&object.ObjectMeta, key, value)
	})
}

// releaseStatus is the status of a revision in `helm list`; "" if its Secret is gone.
func (w *world) releaseStatus(namespace, name string) string {
	w.t.Helper()
	secret := &corev1.Secret{}
	w.has(secret, namespace, name)
	return secret.Labels["status"]
}

// The end of a release with hooks. It fails if objects are deleted before the pre-delete hook has ended, if its failure
// does not block, if the post-delete hook runs before they are gone, if its namespace or the release's Secret is
// deleted before it has ended, and if leftovers of hooks keep our namespace.
func TestDeletionHooks(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	w.publishChart("leaving", "leaving", nil, map[string]string{
		"settings": settings, "a": job("farewell", "pre-delete", ""), "b": job("last", "post-delete", ""),
	})
	w.start()
	object := w.install("leaving", "")
	namespace := object.Spec.TargetNamespace
	w.ready(object)
	w.delete(object)

	failing := w.awaitJob(object, "farewell")
	w.expectSummary(object, "False", kubermaticv1.ReasonRemoving, "farewell", "pre-delete", "it runs")
	w.end(failing, false)
	w.expectSummary(object, "False", kubermaticv1.ReasonRemovalBlocked, kubermaticv1.AnnotationSkipHooks+`: "true"`)
	if status := w.releaseStatus(namespace, "sh.helm.release.v1.leaving.v1"); status != "uninstalling" {
		t.Errorf("the release is %q, want it uninstalling", status)
	}
	if !w.has(&corev1.ConfigMap{}, namespace, "settings") {
		t.Error("objects go although the hook before failed")
	}
	w.annotate(object, kubermaticv1.AnnotationReconcileAt, "now")
	w.end(w.awaitJob(object, "farewell", failing.UID), true)

	last := w.awaitJob(object, "last")
	if w.has(&corev1.ConfigMap{}, namespace, "settings") {
		t.Error("the hook after runs before the objects are gone")
	}
	if w.releaseStatus(namespace, "sh.helm.release.v1.leaving.v1") == "" {
		t.Error("the release's Secret goes before the hook has ended")
	}
	w.end(last, true)
	expect.Gone(t, w.seed, object)
	expect.Gone(t, w.seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
}

// TestDeletionWithoutHooks fails if annotation skip-hooks does not unblock a removal, and if hooks of a removal run, or
// block it, although the release was never complete.
func TestDeletionWithoutHooks(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	w.publishChart("skipped", "skipped", nil, map[string]string{"settings": settings, "a": job("farewell", "pre-delete,post-delete", "")})
	w.publishChart("half", "half", nil, map[string]string{
		"settings": settings, "a": job("farewell", "pre-delete,post-delete", ""), "b": job("prepare", "pre-install", ""),
	})
	w.start()
	skipped, half := w.install("skipped", ""), w.install("half", "")
	w.ready(skipped)
	w.delete(skipped)
	w.end(w.awaitJob(skipped, "farewell"), false)
	w.expectSummary(skipped, "False", kubermaticv1.ReasonRemovalBlocked, "farewell")
	w.annotate(skipped, kubermaticv1.AnnotationSkipHooks, "true")
	expect.Gone(t, w.seed, skipped)

	w.awaitJob(half, "prepare")
	w.delete(half)
	expect.Gone(t, w.seed, half)
	expect.Gone(t, w.seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: half.Spec.TargetNamespace}})
}

// roleHook is the template of a right for Jobs of an event, as in ingress-nginx and gatekeeper.
func roleHook(name, event string) string {
	return fmt.Sprintf("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: %s\n  annotations: {"+
		"helm.sh/hook: %s, helm.sh/hook-weight: \"-1\", helm.sh/hook-delete-policy: \"before-hook-creation,hook-succeeded\"}\n"+
		"rules: []\n", name, event)
}

// An installation that is deleted while a hook runs, or whose removal continues without one, leaves no cluster-wide
// right of its hooks. It fails if Stop only handles Jobs and Pods, and if it leaves a skipped hook of the removal.
func TestRightsOfHooksThatAreEndedGo(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	w.publishChart("midway", "midway", nil, map[string]string{
		"settings": settings, "role": roleHook("midway-hook", "pre-install"), "a": job("prepare", "pre-install", ""),
	})
	w.publishChart("hanging", "hanging", nil, map[string]string{
		"settings": settings, "role": roleHook("hanging-hook", "pre-delete"), "a": job("farewell", "pre-delete", ""),
	})
	w.start()
	midway, hanging := w.install("midway", ""), w.install("hanging", "")
	w.awaitJob(midway, "prepare")
	w.ready(hanging)
	w.delete(midway)
	w.delete(hanging)
	w.awaitJob(hanging, "farewell")
	w.annotate(hanging, kubermaticv1.AnnotationSkipHooks, "true")
	for name, object := range map[string]*kubermaticv1.AddonInstallation{"midway-hook": midway, "hanging-hook": hanging} {
		expect.Gone(t, w.seed, object)
		if w.has(&rbacv1.ClusterRole{}, "", name) {
			t.Errorf("ClusterRole %s outlives its add-on", name)
		}
	}
}

// TestDeletionHooksWithoutARecord fails if an installation's objects stay because a user deleted its records before its
// removal, and its hooks could not be recorded (the case errGone taken out of advanceHooks).
func TestDeletionHooksWithoutARecord(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	w.publishChart("unrecorded", "unrecorded", nil, map[string]string{"settings": settings, "a": job("farewell", "pre-delete", "")})
	w.start()
	object := w.install("unrecorded", "")
	w.ready(object)
	w.dropRecords()
	w.delete(object)
	w.end(w.awaitJob(object, "farewell"), true)
	expect.Gone(t, w.seed, object)
	expect.Gone(t, w.seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: object.Spec.TargetNamespace}})
}

// TestDeletionHooksOfAClusterThatGoes fails if a removal runs a hook in a cluster that is being deleted: it would never
// end.
func TestDeletionHooksOfAClusterThatGoes(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	w.publishChart("gone", "gone", nil, map[string]string{"settings": settings, "a": job("farewell", "pre-delete", "")})
	w.start()
	object := w.install("gone", "")
	w.ready(object)
	w.cluster.Finalizers = []string{"test.example.com/hold"}
	expect.Update(t, w.seed, w.cluster)
	w.delete(w.cluster)
	w.delete(object)
	expect.Gone(t, w.seed, object)
	w.cluster.Finalizers = nil
	expect.Eventually(t, time.Minute, func() error {
		if err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(w.cluster), w.cluster); err != nil {
			return client.IgnoreNotFound(err)
		}
		w.cluster.Finalizers = nil
		return w.seed.Update(t.Context(), w.cluster)
	})
}
