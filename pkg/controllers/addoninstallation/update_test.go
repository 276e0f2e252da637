package addoninstallation_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/test/expect"
)

// Updates write objects that differ from the record; these tests are about records that differ from the user cluster.

const unchanged = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: unchanged}\n"

// With a deleted namespace, objects are lost that an update does not write. It fails if markClusterUnknown keeps the
// inventory: the namespace counts as applied, and the update waits for it forever.
func TestUpdateBringsBackWhatWentWithItsNamespace(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	w.publishChart("emptied", "emptied", nil, map[string]string{"settings": settings, "unchanged": unchanged})
	w.start()
	object := w.install("emptied", "")
	w.ready(object)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: object.Spec.TargetNamespace}}
	w.delete(namespace)
	expect.Gone(t, w.seed, namespace)
	w.edit(object, func(object *kubermaticv1.AddonInstallation) { object.Spec.Values = raw(`{"tag":"two"}`) })
	w.ready(object)
	if !w.has(&corev1.ConfigMap{}, object.Spec.TargetNamespace, "unchanged") {
		t.Error("what the update did not change is still gone")
	}
}

// As with helm, objects that a hook removes exist again after the upgrade. It fails if surveyAfter postpones the
// comparison, or uses lists that are older than the hook.
func TestUpdateBringsBackWhatAHookTookAway(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	w.publishChart("sweeping", "sweeping", nil, map[string]string{
		"settings": settings, "unchanged": unchanged, "sweep": job("sweep", "pre-upgrade", ""),
	})
	w.start()
	object := w.install("sweeping", "")
	w.ready(object)
	w.lookAgain(object)
	w.ready(object)
	w.edit(object, func(object *kubermaticv1.AddonInstallation) { object.Spec.Values = raw(`{"tag":"two"}`) })
	sweep := w.awaitJob(object, "sweep")
	w.delete(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: object.Spec.TargetNamespace, Name: "unchanged"}})
	w.end(sweep, true)
	w.ready(object)
	if !w.has(&corev1.ConfigMap{}, object.Spec.TargetNamespace, "unchanged") {
		t.Error("what the hook took away is not there")
	}
	if !w.has(&batchv1.Job{}, object.Spec.TargetNamespace, "sweep") {
		t.Error("the hook is gone")
	}
}

// Two versions with the same content have the same objects, but differ. It fails if compare finds no change because the
// inputs are equal: the status names the previous version, and Ready, forever.
func TestVersionsOfTheSameContentHaveTheirNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	heard := w.overhear()
	w.start()
	first, second := w.version(offered{version: "1.0.0"}), w.version(offered{version: "1.0.0"})
	second.Version = "1.2.0"
	w.publishVersions("twin", kubermaticv1.CatalogueCustom, []kubermaticv1.AddonVersion{first, second})
	object := w.install("twin", "1.0.0")
	w.ready(object)
	heard.sinceThen()
	w.want(object, "1.2.0")
	w.expectVersion(object, "1.2.0")
	for _, call := range heard.sinceThen() {
		if !strings.HasPrefix(call, http.MethodGet) {
			t.Errorf("another name made call %q", call)
		}
	}
	w.edit(object, func(object *kubermaticv1.AddonInstallation) {
		object.Spec.ReconcileStrategy = kubermaticv1.ReconcileOnce
	})
	w.expectVersion(object, "1.2.0")
	third := *second.DeepCopy()
	third.Version = "1.3.0"
	w.publishVersions("twin", kubermaticv1.CatalogueCustom, []kubermaticv1.AddonVersion{first, second, third})
	w.want(object, "1.3.0")
	expect.Object(t, w.seed, object, func(object *kubermaticv1.AddonInstallation) error {
		if object.Status.AvailableUpdate != "1.3.0" || object.Status.Target != "1.2.0" || object.Status.Version != "1.2.0" {
			return fmt.Errorf("update %q, target %q, version %q where nothing is applied again",
				object.Status.AvailableUpdate, object.Status.Target, object.Status.Version)
		}
		return nil
	})
}

// A version of the same content only gives an intent another name. It fails if the record then counts as applied: a new
// process then applies nothing of it.
func TestAnotherNameAppliesNoIntent(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	var first kubermaticv1.AddonVersion
	w.publishChart("renamed", "renamed", func(version *kubermaticv1.AddonVersion) { first = *version },
		map[string]string{"settings": settings, "before": job("before", "pre-install", "")})
	second := *first.DeepCopy()
	second.Version = "1.2.0"
	w.publishVersions("renamed", kubermaticv1.CatalogueCustom, []kubermaticv1.AddonVersion{first, second})
	stop := w.startUntil()
	object := w.install("renamed", "1.0.0")
	before := w.awaitJob(object, "before")
	w.want(object, "1.2.0")
	expect.Object(t, w.seed, object, func(object *kubermaticv1.AddonInstallation) error {
		if object.Status.Target != "1.2.0" || object.Status.ObservedGeneration != object.Generation {
			return fmt.Errorf("target %q of generation %d", object.Status.Target, object.Status.ObservedGeneration)
		}
		return nil
	})
	for _, secret := range w.recordSecrets() {
		if labels := secret.Labels; labels[revision.LabelState] != string(revision.StateIntent) || labels[revision.LabelVersion] != "1.2.0" {
			t.Errorf("the record says %v while its first hook runs", labels)
		}
	}
	stop()
	w.start()
	w.end(before, true)
	w.expectVersion(object, "1.2.0")
	if !w.has(&corev1.ConfigMap{}, object.Spec.TargetNamespace, "settings") {
		t.Error("the intent was not carried out")
	}
}

// expectVersion waits until the status names that version, and Ready.
func (w *world) expectVersion(object *kubermaticv1.AddonInstallation, version string) {
	w.t.Helper()
	expect.Object(w.t, w.seed, object, func(object *kubermaticv1.AddonInstallation) error {
		if object.Status.Version != version || object.Status.ObservedGeneration != object.Generation {
			return fmt.Errorf("version %q of generation %d", object.Status.Version, object.Status.ObservedGeneration)
		}
		return expect.Condition(object, kubermaticv1.ConditionReady, "True", kubermaticv1.ReasonReady)
	})
}

// The content of an earlier record is not trusted if the newest one is unreadable. It fails if InCluster accepts it:
// the settings stay those of the lost revision.
func TestUpdateOverDamagedRecordWritesEverything(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish("spoilt", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"}, offered{version: "2.0.0"})
	stop := w.startUntil()
	t.Cleanup(stop)
	object := w.install("spoilt", "1.0.0")
	w.expectInstalled(object, "1.0.0", "2.0.0")
	w.want(object, "2.0.0")
	w.expectInstalled(object, "2.0.0", "")
	stop()
	owner := ownership.Owner{ClusterUID: w.cluster.UID, Installation: object.Name}
	var heads corev1.SecretList
	err := w.seed.List(t.Context(), &heads, client.InNamespace(w.namespace), client.MatchingLabels{
		kubermaticv1.LabelInstallation: owner.ID(), revision.LabelRevision: "2",
	})
	expect.NoError(t, errors.Join(err, w.spoil(heads.Items...)))
	w.edit(object, func(object *kubermaticv1.AddonInstallation) {
		object.Annotations = map[string]string{kubermaticv1.AnnotationAllowDowngrade: "true"}
		object.Spec.AddonRef.Version = "1.0.0"
	})
	w.start()
	w.expectInstalled(object, "1.0.0", "2.0.0")
}

// spoil makes records unreadable.
func (w *world) spoil(heads ...corev1.Secret) error {
	if len(heads) == 0 {
		return errors.New("there is no such record")
	}
	var all error
	for i := range heads {
		heads[i].Data["record"] = []byte("spoilt")
		all = errors.Join(all, w.seed.Update(w.t.Context(), &heads[i]))
	}
	return all
}
