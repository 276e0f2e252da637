package addoninstallation_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// Hooks whose environment changes.

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// TestDeletionEndsHooks fails if a hook continues after its installation is gone, in a namespace that stays for foreign
// objects.
func TestDeletionEndsHooks(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	w.publishChart("running", "running", nil, map[string]string{"settings": settings, "a": job("prepare", "pre-install", "")})
	w.start()
	object := w.install("running", "")
	w.awaitJob(object, "prepare")
	w.create(configMap(object.Spec.TargetNamespace, "foreign"))
	w.delete(object)
	expect.Gone(t, w.seed, object)
	if w.has(&batchv1.Job{}, object.Spec.TargetNamespace, "prepare") {
		t.Error("the hook runs on")
	}
}

// AG23: Fails if a removal waits forever because a user deleted the namespace before it.
func TestDeletionHooksWithoutANamespace(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	w.publishChart("homeless", "homeless", nil, map[string]string{"settings": settings, "a": job("farewell", "pre-delete,post-delete", "")})
	stop := w.startUntil()
	object := w.install("homeless", "")
	w.ready(object)
	stop()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: object.Spec.TargetNamespace}}
	w.delete(namespace)
	expect.Gone(t, w.seed, namespace)
	w.delete(object)
	w.start()
	expect.Gone(t, w.seed, object)
	w.expectEvent(kubermaticv1.EventHookSkipped, object, "homeless/templates/a.yaml", "pre-delete", namespace.Name+"/farewell", "createNamespace")
}

// TestReleaseIsTakenFromTheIntentOn fails if the status has no release name before the first objects are applied:
// another installation could use it.
func TestReleaseIsTakenFromTheIntentOn(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	w.publishChart("refused", "refused", nil, map[string]string{
		"a": "apiVersion: v1\nkind: Service\nmetadata: {name: refused}\nspec: {ports: []}\n",
	})
	w.start()
	object := w.install("refused", "")
	w.expectSummary(object, "False", kubermaticv1.ReasonObjectInvalid, "refused")
	want := &kubermaticv1.HelmReleaseState{Name: "refused", Revision: 1, Status: "pending-install"}
	if diff := cmp.Diff(want, object.Status.Release); diff != "" {
		t.Errorf("the release (-want +got):\n%s", diff)
	}
}

// TestObjectBecomesAHook fails if an object that the next version has as a hook, and that the hook leaves unchanged, is
// pruned with the previous version.
func TestObjectBecomesAHook(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	const lasting = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: lasting\n"
	w.publishChart("turning", "turning", nil, map[string]string{
		"settings": settings, "a": lasting, "b": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: dropped}\n",
	})
	w.start()
	object := w.install("turning", "")
	namespace := object.Spec.TargetNamespace
	w.ready(object)
	before := &corev1.ConfigMap{}
	if !w.has(before, namespace, "lasting") {
		t.Fatal("the object is not there")
	}
	w.publishChart("turning", "turning", nil, map[string]string{
		"settings": settings, "a": lasting + "  annotations: {helm.sh/hook: pre-upgrade, helm.sh/hook-delete-policy: hook-failed}\n",
	})
	expect.Gone(t, w.seed, configMap(namespace, "dropped"))
	w.ready(object)
	after := &corev1.ConfigMap{}
	if !w.has(after, namespace, "lasting") || after.UID != before.UID {
		t.Error("what the hook left is gone")
	}
}
