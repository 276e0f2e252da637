package charts

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"

	"helm.sh/helm/v3/pkg/chart"

	"github.com/trellis-addons/trellis/test/golden"
)

const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// everySetting are the values that platform teams look for in any chart.
var everySetting = map[string]any{
	"global": map[string]any{"imageRegistry": "registry.example.com/mirror", "of-another-chart": true},
	"image":  map[string]any{"tag": "1.2.3", "digest": digest}, "replicas": 2,
	"commonLabels":      map[string]any{"team": "platform", "app.kubernetes.io/name": "other"},
	"commonAnnotations": map[string]any{"note": "common"},
	"podLabels":         map[string]any{"app.kubernetes.io/instance": "other", "pod": "yes"},
	"podAnnotations":    map[string]any{"note": "of the pod", "scrape": "no"},
	"extraArgs":         []any{"--v=3"},
	"extraEnv":          []any{map[string]any{"name": "TZ", "value": "UTC"}},
	"extraVolumes":      []any{map[string]any{"name": "known-hosts", "secret": map[string]any{"secretName": "known-hosts"}}},
	"extraVolumeMounts": []any{map[string]any{"name": "known-hosts", "mountPath": "/etc/ssh", "readOnly": true}},
	"nodeSelector":      map[string]any{"kubernetes.io/os": "linux"},
	"tolerations":       []any{map[string]any{"key": "platform", "operator": "Exists", "effect": "NoSchedule"}},
	"affinity": map[string]any{"podAntiAffinity": map[string]any{"preferredDuringSchedulingIgnoredDuringExecution": []any{map[string]any{
		"weight": 1, "podAffinityTerm": map[string]any{"topologyKey": "kubernetes.io/hostname"},
	}}}},
	"topologySpreadConstraints": []any{
		map[string]any{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"},
		map[string]any{
			"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
			"labelSelector": map[string]any{"matchLabels": map[string]any{"team": "platform"}},
		},
	},
	"priorityClassName":  "system-cluster-critical",
	"metricsBindAddress": ":8085", "debugBindAddress": "[::1]:6060",
	"metrics": map[string]any{
		"service": map[string]any{"enabled": true}, "serviceMonitor": map[string]any{"enabled": true, "labels": map[string]any{"release": "prometheus"}},
		"prometheusRule": map[string]any{"enabled": true, "labels": map[string]any{"release": "prometheus"}},
		"dashboards":     map[string]any{"enabled": true, "annotations": map[string]any{"grafana_folder": "platform"}},
	},
	"tracing":             map[string]any{"endpoint": "https://collector.monitoring.svc:4318", "samplingRatio": 1, "caSecret": "collector-ca"},
	"networkPolicy":       map[string]any{"enabled": true, "metricsFrom": []any{map[string]any{"namespaceSelector": map[string]any{}}}},
	"podDisruptionBudget": map[string]any{"enabled": true},
	"webhook":             map[string]any{"certManager": map[string]any{"enabled": true}},
}

// withEverySetting are the renderings of everySetting, for the managers.
func withEverySetting() []rendering {
	return slices.DeleteFunc(slices.Clone(renderings), func(r rendering) bool { return r.why != "with every setting" })
}

// Common labels and annotations are on every object, and what the chart says itself stays: selectors still find
// the pods. Red when an object is left out, or when a given label takes the place of one that is selected by.
func TestCommonLabelsAreOnEveryObject(t *testing.T) {
	for _, r := range append(withEverySetting(), webRenderings[2]) {
		_, objects := render(t, r)
		for _, object := range objects {
			labels, note := object.GetLabels(), object.GetAnnotations()["note"]
			if labels["team"] != "platform" || labels["app.kubernetes.io/name"] != r.chart || note != "common" {
				t.Errorf("%s: %s %s has labels %v and note %q", r, object.GetKind(), object.GetName(), labels, note)
			}
		}
		manager := deployment(t, objects)
		pod := manager.Spec.Template
		for name, value := range manager.Spec.Selector.MatchLabels {
			if pod.Labels[name] != value {
				t.Errorf("%s: the pod has label %s=%s, and %s is selected", r, name, pod.Labels[name], value)
			}
		}
		if pod.Labels["pod"] != "yes" || pod.Labels["team"] != "platform" {
			t.Errorf("%s: the pod has labels %v", r, pod.Labels)
		}
		if want := map[string]string{"note": "of the pod", "scrape": "no"}; !maps.Equal(pod.Annotations, want) {
			t.Errorf("%s: the pod has annotations %v", r, pod.Annotations)
		}
	}
}

// Red when a setting does not reach the pod, when extra arguments come before one of the chart's, or when the digest is
// left out.
func TestSettingsReachThePod(t *testing.T) {
	for _, r := range withEverySetting() {
		_, objects := render(t, r)
		spec := deployment(t, objects).Spec.Template.Spec
		manager := spec.Containers[0]
		if want := "registry.example.com/mirror/trellis-addons/" + Program(r.chart) + ":1.2.3@" + digest; manager.Image != want {
			t.Errorf("%s runs %s, expected %s", r, manager.Image, want)
		}
		if last := manager.Args[len(manager.Args)-1]; last != "--v=3" {
			t.Errorf("%s: the last argument is %s", r, last)
		}
		if len(manager.Env) != 2 || manager.Env[0].Name != "MEMORY_LIMIT" || manager.Env[1].Value != "UTC" {
			t.Errorf("%s: environment %v", r, manager.Env)
		}
		for _, want := range []string{
			"--tracing-endpoint=https://collector.monitoring.svc:4318", "--tracing-sampling-ratio=1", "--tracing-ca-file=/etc/trellis/tracing/ca.crt",
		} {
			if !slices.Contains(manager.Args, want) {
				t.Errorf("%s: no argument %s", r, want)
			}
		}
		if !slices.ContainsFunc(manager.VolumeMounts, func(one corev1.VolumeMount) bool { return one.MountPath == "/etc/ssh" && one.ReadOnly }) {
			t.Errorf("%s: mounts %v", r, manager.VolumeMounts)
		}
		if !slices.ContainsFunc(spec.Volumes, func(one corev1.Volume) bool { return one.Name == "known-hosts" && one.Secret != nil }) {
			t.Errorf("%s: volumes %v", r, spec.Volumes)
		}
		if spec.PriorityClassName != "system-cluster-critical" || len(spec.NodeSelector) != 1 || len(spec.Tolerations) != 1 || spec.Affinity == nil {
			t.Errorf("%s: placed by %q %v %v %v", r, spec.PriorityClassName, spec.NodeSelector, spec.Tolerations, spec.Affinity)
		}
		var spread []string
		for _, one := range spec.TopologySpreadConstraints {
			for _, name := range slices.Sorted(maps.Keys(one.LabelSelector.MatchLabels)) {
				spread = append(spread, one.TopologyKey+" "+name)
			}
		}
		want := []string{
			"topology.kubernetes.io/zone app.kubernetes.io/instance", "topology.kubernetes.io/zone app.kubernetes.io/name", "kubernetes.io/hostname team",
		}
		if diff := cmp.Diff(want, spread); diff != "" {
			t.Errorf("%s: spread (-want +got):\n%s", r, diff)
		}
	}
}

// Whoever scrapes finds a port of the pod by the Service, and is let in. Red when the Service's port leads nowhere, or when
// the NetworkPolicy lets in another one.
func TestMetricsAreReached(t *testing.T) {
	for _, r := range withEverySetting() {
		_, objects := render(t, r)
		var found []corev1.Service
		for _, object := range objects {
			if strings.HasSuffix(object.GetName(), "-metrics") && object.GetKind() == "Service" {
				found = append(found, typed[corev1.Service](t, objects[slices.Index(objects, object):], "Service"))
			}
		}
		if len(found) != 1 {
			t.Fatalf("%s: %d Services for metrics", r, len(found))
		}
		ports := deployment(t, objects).Spec.Template.Spec.Containers[0].Ports
		port := found[0].Spec.Ports[0]
		if !slices.ContainsFunc(ports, func(one corev1.ContainerPort) bool {
			return one.Name == port.TargetPort.String() && one.ContainerPort == port.Port && port.Port == 8085
		}) {
			t.Errorf("%s: the Service leads to %v, and the ports are %v", r, port, ports)
		}
		policy := typed[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy")
		if !slices.ContainsFunc(policy.Spec.Ingress, func(one networkingv1.NetworkPolicyIngressRule) bool {
			return one.Ports[0].Port.IntVal == port.Port && len(one.From) == 1
		}) {
			t.Errorf("%s: the policy lets in %v", r, policy.Spec.Ingress)
		}
		if budget := typed[policyv1.PodDisruptionBudget](t, objects, "PodDisruptionBudget"); budget.Spec.MaxUnavailable.IntVal != 1 {
			t.Errorf("%s: budget %v", r, budget.Spec)
		}
	}
}

// Red when a Service or ServiceMonitor is made that nothing answers behind.
func TestMetricsThatNobodyReachesAreRefused(t *testing.T) {
	on := map[string]any{"serviceMonitor": map[string]any{"enabled": true}}
	from := map[string]any{"metricsFrom": []any{map[string]any{"podSelector": map[string]any{}}}}
	for _, name := range []string{"trellis-master", "trellis-seed"} {
		for _, test := range []struct {
			why, says string
			values    map[string]any
		}{
			{"inside the pod", "metricsBindAddress", map[string]any{"metrics": on, "networkPolicy": from}},
			{"off", "metricsBindAddress", map[string]any{"metrics": on, "networkPolicy": from, "metricsBindAddress": "0"}},
			{"behind the policy", "metricsFrom", map[string]any{
				"metrics": on, "metricsBindAddress": ":8085", "networkPolicy": map[string]any{"enabled": true},
			}},
			{"without a policy", "", map[string]any{"metrics": on, "metricsBindAddress": ":8085"}},
		} {
			_, err := renderFiles(load(t, name), test.values)
			if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("%s, %s: %v", name, test.why, err)
			}
		}
	}
}

// kubernetesOwn are the values that are parts of Kubernetes' own objects, or shared with other charts: who reads them
// knows their fields, and this schema can't.
var kubernetesOwn = regexp.MustCompile(`^(global|affinity/\w+|topologySpreadConstraints/\[\]/labelSelector|` +
	`(extraVolumes|extraVolumeMounts|resources/claims)/\[\]|extraEnv/\[\]/valueFrom|networkPolicy/\w+/\[\])$`)

// Every object of a schema names all of its keys, or the shape of their values. Red when a misspelt key is taken.
func TestSchemasAreClosed(t *testing.T) {
	for _, name := range []string{"trellis-master", "trellis-seed", webChart} {
		var walk func(path string, schema map[string]any)
		walk = func(path string, schema map[string]any) {
			_, closed := schema["additionalProperties"]
			if schema["type"] == "object" && closed == kubernetesOwn.MatchString(path) {
				t.Errorf("%s: closed(%t) is wrong for %q", name, closed, path)
			}
			properties, _ := schema["properties"].(map[string]any)
			for key, inner := range properties {
				walk(strings.TrimPrefix(path+"/"+key, "/"), inner.(map[string]any))
			}
			if items, found := schema["items"].(map[string]any); found {
				walk(path+"/[]", items)
			}
		}
		walk("", schemaOf(t, load(t, name)))
	}
}

func schemaOf(t *testing.T, loaded *chart.Chart) map[string]any {
	t.Helper()
	var schema map[string]any
	if err := json.Unmarshal(loaded.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

// Red when the schema knows a value that values.yaml does not show.
func TestValuesShowWhatTheSchemaKnows(t *testing.T) {
	for _, name := range []string{"trellis-master", "trellis-seed", webChart} {
		loaded := load(t, name)
		var walk func(path string, schema, values map[string]any)
		walk = func(path string, schema, values map[string]any) {
			properties, _ := schema["properties"].(map[string]any)
			for key, inner := range properties {
				value, found := values[key]
				if !found {
					t.Errorf("%s: values.yaml has no %s", name, strings.TrimPrefix(path+"."+key, "."))
				}
				if below, isObject := value.(map[string]any); isObject && len(below) > 0 {
					walk(path+"."+key, inner.(map[string]any), below)
				}
			}
		}
		loaded.Values["resources"] = nil // Kubernetes' own, of which a part is set
		walk("", schemaOf(t, loaded), loaded.Values)
	}
}

// random is a path that is another one each time.
var random = regexp.MustCompile(`\b[a-z0-9]{48}\b`)

// What these configurations render to is read by people when it changes: `go test ./test/charts -run TestRendered -update`. The file of a
// chart as it is has everything, those of its other configurations have what differs from it.
func TestRenderedAsReviewed(t *testing.T) {
	for _, one := range []struct {
		file, plain string
		rendering
	}{
		{"master", "", renderings[0]}, {"master-standalone", "master", renderings[1]},
		{"seed", "", renderings[2]}, {"seed-standalone", "seed", renderings[3]},
		{"seed-every-setting", "seed", withEverySetting()[1]}, {"seed-agents", "seed", rendering{chart: "trellis-seed", values: withAgents}},
		{"web", "", webRenderings[0]}, {"web-config-map", "web", webRenderings[1]}, {"web-every-setting", "web", webRenderings[2]},
	} {
		found := rendered(t, one.rendering)
		if one.plain != "" {
			found = differing(t, rendered(t, rendering{chart: one.chart, values: withLeast(one.chart, nil)}), found)
		}
		golden.Match(t, "testdata/golden/"+one.file+".yaml", strings.Join(found, ""))
	}
}

// rendered is what a chart renders to, document by document. The first one of each file has the file's name above it.
func rendered(t *testing.T, r rendering) []string {
	t.Helper()
	files, err := renderFiles(load(t, r.chart), r.values)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if content := strings.TrimSpace(files[name]); content != "" && !strings.HasSuffix(name, ".tpl") {
			text.WriteString("# " + name + "\n" + random.ReplaceAllString(content, "RANDOM") + "\n---\n")
		}
	}
	return strings.SplitAfter(text.String(), "\n---\n")
}

// differing are the documents that plain does not have, after the objects that only plain has.
func differing(t *testing.T, plain, documents []string) []string {
	t.Helper()
	absent := objectsOf(t, plain)
	for name := range objectsOf(t, documents) {
		delete(absent, name)
	}
	var found []string
	for _, name := range slices.Sorted(maps.Keys(absent)) {
		found = append(found, "# absent: "+name+"\n")
	}
	return append(found, slices.DeleteFunc(documents, func(document string) bool { return slices.Contains(plain, document) })...)
}

// objectsOf are the kinds and names of the objects in documents.
func objectsOf(t *testing.T, documents []string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, document := range documents {
		if strings.Contains(document, "/templates/NOTES.txt\n") {
			continue
		}
		objects, err := Documents("what was rendered", strings.TrimSuffix(document, "---\n"))
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects {
			all[object.GetKind()+" "+object.GetName()] = true
		}
	}
	return all
}
