package addoninstallation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/values"
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

// unwatched makes a version Ready without its pods: no controller runs here.
func unwatched(version *kubermaticv1.AddonVersion) {
	version.Template.Health = &kubermaticv1.HealthCheck{Mode: kubermaticv1.HealthUnwatched}
}

// TestAMarkedJobOfAChartCleansUpBeforeTheRemoval fails when the Job that Open Cluster Management runs before the
// deletion runs at the installation or at an upgrade, when objects are deleted before it is complete or although it
// failed, and when it counts as an object of the release.
func TestAMarkedJobOfAChartCleansUpBeforeTheRemoval(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	w.publishChart("greeter", "greeter", unwatched, ocmChart())
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

// ocmManifests are like those of helloworld: a Deployment with the names that an AddOnDeploymentConfig gives.
const ocmManifests = `apiVersion: apps/v1
kind: Deployment
metadata: {name: greeter, namespace: {{ .AddonInstallNamespace }}}
spec:
  replicas: 0
  selector: {matchLabels: {app: greeter}}
  template:
    metadata: {labels: {app: greeter}}
    spec:
{{- if .Variables.NodeSelector }}
      nodeSelector:
      {{- range $key, $value := .Variables.NodeSelector }}
        "{{ $key }}": "{{ $value }}"
      {{- end }}
{{- end }}
{{- if .Variables.Tolerations }}
      tolerations:
      {{- range $toleration := .Variables.Tolerations }}
      - key: "{{ $toleration.Key }}"
        value: "{{ $toleration.Value }}"
        effect: "{{ $toleration.Effect }}"
        operator: "{{ $toleration.Operator }}"
        {{- if $toleration.TolerationSeconds }}
        tolerationSeconds: {{ $toleration.TolerationSeconds }}
        {{- end }}
      {{- end }}
{{- end }}
      containers:
      - name: agent
        image: {{ .Variables.Image }}
{{- if .Variables.HTTPSProxy }}
        env:
        - {name: HTTPS_PROXY, value: {{ .Variables.HTTPSProxy }}}
        - {name: NO_PROXY, value: {{ .Variables.NoProxy }}}
{{- end }}
        args: ["--cluster-name={{ .ClusterName }}", "--addon-namespace={{ .AddonInstallNamespace }}"]
`

// deploymentConfig is an AddOnDeploymentConfig of this world.
func (w *world) deploymentConfig(name, spec string) *unstructured.Unstructured {
	w.t.Helper()
	made := &unstructured.Unstructured{Object: map[string]any{}}
	expect.NoError(w.t, yaml.Unmarshal([]byte("spec: {"+spec+"}"), &made.Object))
	made.SetGroupVersionKind(values.DeploymentConfigKind.WithVersion("v1alpha1"))
	made.SetNamespace(w.namespace)
	made.SetName(name)
	return made
}

// TestAnAddOnDeploymentConfigConfiguresManifests fails when the configuration that the catalogue names, or the one that
// the installation names, does not reach the objects, when an edit of one does not, when its mirrors are ignored, and when
// the status does not show both with their state.
func TestAnAddOnDeploymentConfigConfiguresManifests(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	w.providers = []schema.GroupKind{values.DeploymentConfigKind}
	ref := func(name string) *kubermaticv1.ObjectReference {
		return &kubermaticv1.ObjectReference{APIGroup: values.DeploymentConfigKind.Group, Kind: values.DeploymentConfigKind.Kind, Name: name}
	}
	version := w.templated("5.0.0", map[string]string{"agent.yaml": ocmManifests})
	unwatched(&version)
	version.Values = raw(`{"Image":"quay.io/greeter:1"}`)
	version.ValuesFrom = []kubermaticv1.VersionValuesSource{{ObjectRef: ref("deploy-config")}}
	w.offer("greeting", kubermaticv1.CatalogueCustom, version)
	w.start()
	object := w.install("greeting", "")
	expect.HasCondition(t, w.seed, object, expect.Is(kubermaticv1.ConditionValuesResolved, "False", kubermaticv1.ReasonValuesMissing, `"deploy-config"`))
	w.expectConfigs(object, "deploy-config Catalogue Missing")

	defaults := w.deploymentConfig("deploy-config", "nodePlacement: {nodeSelector: {kubernetes.io/os: linux}, tolerations: "+
		"[{key: infra, operator: Exists, effect: NoSchedule}]}, proxyConfig: {httpsProxy: http://proxy, noProxy: .svc}")
	w.create(defaults)
	w.ready(object)
	pod := w.podOf(object)
	tolerations := []corev1.Toleration{{Key: "infra", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
	env := []corev1.EnvVar{{Name: "HTTPS_PROXY", Value: "http://proxy"}, {Name: "NO_PROXY", Value: ".svc"}}
	args := []string{"--cluster-name=" + w.namespace, "--addon-namespace=" + object.Spec.TargetNamespace}
	if diff := cmp.Diff([]any{map[string]string{"kubernetes.io/os": "linux"}, tolerations, env, args},
		[]any{pod.NodeSelector, pod.Tolerations, pod.Containers[0].Env, pod.Containers[0].Args}); diff != "" {
		t.Errorf("the pod (-want +got):\n%s", diff)
	}
	w.expectConfigs(object, "deploy-config Catalogue Applied")

	w.create(w.deploymentConfig("own", "customizedVariables: [{name: Image, value: 'quay.io/team/greeter:2'}], "+
		"registries: [{source: quay.io/team, mirror: mirror.example.com/team}]"))
	w.edit(object, func(object *kubermaticv1.AddonInstallation) {
		object.Spec.ValuesFrom = []kubermaticv1.ValuesSource{{ObjectRef: ref("own")}}
	})
	w.expectPod(object, func(pod corev1.PodSpec) string { return pod.Containers[0].Image }, "mirror.example.com/team/greeter:2")
	expect.NoError(t, unstructured.SetNestedField(defaults.Object, "arm", "spec", "nodePlacement", "nodeSelector", "arch"))
	expect.Update(t, w.seed, defaults)
	w.expectPod(object, func(pod corev1.PodSpec) string { return pod.NodeSelector["arch"] }, "arm")
	w.expectConfigs(object, "deploy-config Catalogue Applied", "own Installation Applied")
}

func (w *world) podOf(object *kubermaticv1.AddonInstallation) corev1.PodSpec {
	w.t.Helper()
	found := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: object.Spec.TargetNamespace, Name: "greeter"}}
	expect.Read(w.t, w.seed, found)
	return found.Spec.Template.Spec
}

// expectPod waits for a property of the pod.
func (w *world) expectPod(object *kubermaticv1.AddonInstallation, of func(corev1.PodSpec) string, want string) {
	w.t.Helper()
	expect.Eventually(w.t, expect.Patience, func() error {
		if got := of(w.podOf(object)); got != want {
			return fmt.Errorf("the pod has %q, not %q", got, want)
		}
		return nil
	})
}

// expectConfigs waits for the objects with values, as "name origin state", and checks their digests.
func (w *world) expectConfigs(object *kubermaticv1.AddonInstallation, want ...string) {
	w.t.Helper()
	expect.Object(w.t, w.seed, object, func(object *kubermaticv1.AddonInstallation) error {
		var got []string
		for _, one := range object.Status.Configs {
			got = append(got, fmt.Sprintf("%s %s %s", one.Name, one.Origin, one.State))
			if isApplied := one.Digest != "" && one.Digest == one.AppliedDigest; isApplied != (one.State == kubermaticv1.ConfigApplied) {
				return fmt.Errorf("the digests of %+v", one)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("configs (-want +got):\n%s", diff)
		}
		return nil
	})
}

// TestAnAddOnDeploymentConfigConfiguresCharts fails when a chart gets other names than charts of Open Cluster Management
// have.
func TestAnAddOnDeploymentConfigConfiguresCharts(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	w.providers = []schema.GroupKind{values.DeploymentConfigKind}
	w.create(w.deploymentConfig("chart-config", "nodePlacement: {nodeSelector: {kubernetes.io/os: linux}, tolerations: [{key: infra, operator: Exists}]}, "+
		"proxyConfig: {httpProxy: http://proxy}"))
	files := ocmChart()
	files["agent"] = strings.Replace(files["agent"], "    spec: {service", "    spec: {nodeSelector: {{ toJson .Values.global.nodeSelector }}, "+
		"tolerations: {{ toJson .Values.tolerations }}, hostname: {{ .Values.global.proxyConfig.HTTP_PROXY | trimPrefix \"http://\" }}, service", 1)
	w.publishChart("configured", "configured", func(version *kubermaticv1.AddonVersion) {
		unwatched(version)
		version.ValuesFrom = []kubermaticv1.VersionValuesSource{{ObjectRef: &kubermaticv1.ObjectReference{
			APIGroup: values.DeploymentConfigKind.Group, Kind: values.DeploymentConfigKind.Kind, Name: "chart-config",
		}}}
	}, files)
	w.start()
	object := w.install("configured", "")
	w.ready(object)
	pod := w.podOf(object)
	if pod.NodeSelector["kubernetes.io/os"] != "linux" || len(pod.Tolerations) != 1 || pod.Tolerations[0].Key != "infra" || pod.Hostname != "proxy" {
		t.Errorf("the pod is %+v", pod)
	}
}
