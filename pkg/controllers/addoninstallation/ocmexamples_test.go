package addoninstallation_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// Add-ons in the shape of Open Cluster Management's examples (addon-framework, examples).

// ocmChart is a chart like helloworld_helm: a Deployment and its account, and a Job that is marked to clean up. The
// selector of the Job is its own.
func ocmChart() map[string]string {
	return map[string]string{
		"account": "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: greeter-sa, namespace: '{{ .Release.Namespace }}'}\n",
		"agent": `apiVersion: apps/v1
kind: Deployment
metadata: {name: greeter, namespace: '{{ .Release.Namespace }}'}
spec:
  replicas: 0
  selector: {matchLabels: {app: greeter}}
  template:
    metadata: {labels: {app: greeter}}
    spec: {serviceAccountName: greeter-sa, containers: [{name: agent, image: "registry.example.com/greeter:{{ .Values.tag }}"}]}
`,
		"clean": `apiVersion: batch/v1
kind: Job
metadata:
  name: greeter-clean
  namespace: '{{ .Release.Namespace }}'
  annotations: {addon.open-cluster-management.io/addon-pre-delete: ""}
spec:
  manualSelector: true
  selector: {matchLabels: {job: greeter-clean}}
  template:
    metadata: {labels: {job: greeter-clean}}
    spec:
      serviceAccountName: greeter-sa
      restartPolicy: Never
      containers: [{name: clean, image: "registry.example.com/greeter:{{ .Values.tag }}", args: [cleanup]}]
`,
	}
}

// TestAMarkedJobOfAChartCleansUpBeforeTheRemoval fails when the Job that Open Cluster Management runs before the
// deletion runs at the installation or at an upgrade, when objects are deleted before it is complete or although it
// failed, and when it counts as an object of the release.
func TestAMarkedJobOfAChartCleansUpBeforeTheRemoval(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	w.publishChart("greeter", "greeter", nil, ocmChart())
	w.start()
	object := w.install("greeter", "")
	namespace := object.Spec.TargetNamespace
	w.ready(object)
	w.edit(object, func(object *kubermaticv1.AddonInstallation) { object.Spec.Values = raw(`{"tag":"two"}`) })
	w.ready(object)
	w.expectNoJobs(namespace)
	if !w.has(&appsv1.Deployment{}, namespace, "greeter") {
		t.Error("the agent is not installed")
	}

	w.delete(object)
	failing := w.awaitJob(object, "greeter-clean")
	if image := failing.Spec.Template.Spec.Containers[0].Image; !strings.HasSuffix(image, ":two") {
		t.Errorf("the Job is not that of the last revision: image %s", image)
	}
	w.end(failing, false)
	w.expectSummary(object, "False", kubermaticv1.ReasonRemovalBlocked, "greeter-clean")
	if !w.has(&appsv1.Deployment{}, namespace, "greeter") || !w.has(&corev1.ServiceAccount{}, namespace, "greeter-sa") {
		t.Error("objects go although the Job failed")
	}
	w.annotate(object, kubermaticv1.AnnotationReconcileAt, "now")
	w.end(w.awaitJob(object, "greeter-clean", failing.UID), true)
	expect.Gone(t, w.seed, object)
	if w.has(&batchv1.Job{}, namespace, "greeter-clean") {
		t.Error("the Job stays after it is complete")
	}
}

// TestTemplatesOfAllVersionsSeeTheNamesOfOpenClusterManagement fails when a version without access, of a chart or of
// go-template, lacks the cluster's name on the hub or the namespace that it is installed in.
func TestTemplatesOfAllVersionsSeeTheNamesOfOpenClusterManagement(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	const names = "'%ClusterName | %AddonInstallNamespace | %InstallMode | %HubKubeConfigSecret'"
	settings := func(begin string) string {
		fields := strings.NewReplacer("%", "{{ "+begin, " |", " }} |", "Secret'", "Secret }}'").Replace(names)
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {names: " + fields + "}\n"
	}
	w.publishChart("charted", "charted", func(version *kubermaticv1.AddonVersion) {
		version.ValuesTemplate = "clusterName: {{ .ClusterName }}\naddonInstallNamespace: {{ .AddonInstallNamespace }}\n"
	}, map[string]string{
		"settings": settings(".Values.kkp."),
		"values": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: values}\ndata: {names: '{{ .Values.clusterName }} | " +
			"{{ .Values.addonInstallNamespace }}'}\n",
	})
	w.offer("templated", kubermaticv1.CatalogueCustom, w.templated("3.0.0", map[string]string{"settings.yaml": settings(".")}))
	w.start()
	for _, addon := range []string{"charted", "templated"} {
		object := w.install(addon, "")
		w.ready(object)
		found := &corev1.ConfigMap{}
		w.has(found, object.Spec.TargetNamespace, "settings")
		if got, want := found.Data["names"], w.namespace+" | "+object.Spec.TargetNamespace+" | Default | "; got != want {
			t.Errorf("%s: templates see %q, not %q", addon, got, want)
		}
		if addon == "charted" {
			w.has(found, object.Spec.TargetNamespace, "values")
			if got, want := found.Data["names"], w.namespace+" | "+object.Spec.TargetNamespace; got != want {
				t.Errorf("the valuesTemplate sees %q, not %q", got, want)
			}
		}
	}
}
