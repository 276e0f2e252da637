package addoninstallation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	kit "github.com/trellis-addons/trellis/test/world"
)

// workloads is an atomic version of a chart with ConfigMap settings and these manifests.
func (w *world) workloads(version, manifests string) kubermaticv1.AddonVersion {
	w.t.Helper()
	made := w.content(version, kubermaticv1.MethodHelm, fmt.Sprintf("workloads-%s/%s", w.id, version), map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: web\nversion: " + version + "\n", "templates/all.yaml": settingsTemplate + "---\n" + manifests,
	})
	made.Template.Atomic, made.Template.Timeout = true, &metav1.Duration{Duration: 10 * time.Hour}
	return made
}

// report writes the status of all objects of a kind of apps/v1, as its controller would.
func (w *world) report(namespace, kind, status string) error {
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "apps/v1", "kind": kind + "List"}}
	if err := w.seed.List(w.t.Context(), list, client.InNamespace(namespace)); err != nil {
		return err
	}
	for i := range list.Items {
		live, reported := &list.Items[i], map[string]any{}
		if err := yaml.Unmarshal([]byte(status), &reported); err != nil {
			return err
		}
		before := live.DeepCopy()
		reported["observedGeneration"] = live.GetGeneration()
		live.Object["status"] = reported
		if err := w.seed.Status().Patch(w.t.Context(), live, client.MergeFrom(before)); err != nil {
			return err
		}
	}
	return nil
}

// rolled reports until that version is installed and healthy.
func (w *world) rolled(object *kubermaticv1.AddonInstallation, version, kind, status string) {
	w.t.Helper()
	expect.Eventually(w.t, expect.Patience, func() error {
		if err := w.report(object.Spec.TargetNamespace, kind, status); err != nil {
			return err
		}
		if err := w.seed.Get(w.t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		if have := object.Status.Version; have != version {
			return fmt.Errorf("version %q is there, and the installation is %+v", have, object.Status.Conditions)
		}
		return expect.Condition(object, kubermaticv1.ConditionReady, "True", kubermaticv1.ReasonReady)
	})
}

// An atomic upgrade that changes twelve Deployments to Recreate. It fails if a reconciliation searches only ten
// objects: the others are refused, and reported as ObjectInvalid.
func TestAtomicUpgradeTurnsManyDeployments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.renderers, w.clock = bothMethods(), kit.RunningClock(t)
	w.start()
	deployments := func(spec string) string {
		var manifests []string
		for i := range 12 {
			manifests = append(manifests, fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, metadata: {name: web-%d}, spec: {replicas: 0, %sselector: "+
				"{matchLabels: {app: web-%[1]d}}, template: {metadata: {labels: {app: web-%[1]d}}, spec: {containers: [{name: web, image: \"example.com/web:1\"}]}}}}\n", i, spec))
		}
		return strings.Join(manifests, "---\n")
	}
	const healthy = `{conditions: [{type: Available, status: "True"}, {type: Progressing, status: "True", reason: NewReplicaSetAvailable}]}`
	first := w.workloads("1.0.0", deployments(""))
	w.offer("many", kubermaticv1.CatalogueCustom, first)
	object := w.install("many", "")
	w.rolled(object, "1.0.0", "Deployment", healthy)
	w.offer("many", kubermaticv1.CatalogueCustom, first, w.workloads("2.0.0", deployments("strategy: {type: Recreate}, ")))
	w.rolled(object, "2.0.0", "Deployment", healthy)
	w.expectRevisions(object, "1 Applied 1.0.0", "2 Applied 2.0.0")
	w.expectNoEvent(kubermaticv1.ReasonObjectInvalid)
	w.expectNoEvent(kubermaticv1.ReasonImmutableField)
}

// An atomic upgrade of a DaemonSet whose Pods are replaced by hand. It fails if the upgrade is unhealthy until its Pods
// are replaced: it is rolled back.
func TestAtomicUpgradeOfADaemonSetWithOnDeleteStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.renderers, w.clock = bothMethods(), kit.RunningClock(t)
	w.start()
	daemon := func(image string) string {
		return "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: web}, spec: {updateStrategy: {type: OnDelete}, selector: {matchLabels: {app: web}}, " +
			"template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: \"" + image + "\"}]}}}}\n"
	}
	const status = "{desiredNumberScheduled: 1, currentNumberScheduled: 1, numberMisscheduled: 0, numberReady: 1, numberAvailable: 1, updatedNumberScheduled: "
	first := w.workloads("1.0.0", daemon("example.com/web:1"))
	w.offer("by-hand", kubermaticv1.CatalogueCustom, first)
	object := w.install("by-hand", "")
	w.rolled(object, "1.0.0", "DaemonSet", status+"1}")
	w.offer("by-hand", kubermaticv1.CatalogueCustom, first, w.workloads("2.0.0", daemon("example.com/web:2")))
	w.rolled(object, "2.0.0", "DaemonSet", status+"0}")
	w.clock.Step(11 * time.Hour)
	w.afterwards(object, func() { w.label(object) })
	w.expectRevisions(object, "1 Applied 1.0.0", "2 Applied 2.0.0")
}
