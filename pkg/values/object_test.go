package values_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/values"
)

func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	made := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &made); err != nil {
		t.Fatal(err)
	}
	return made
}

// TestPart fails when values come from another place of an object than its path names, from its metadata, or beyond the
// limits of a layer, and when an error has a value.
func TestPart(t *testing.T) {
	object := decoded(t, "metadata: {annotations: {a: hunter2}}\nspec: {proxy: {http: hunter2}, list: [hunter2], a.b: 1, none: null}\ndata: {c: d}\n")
	object["status"] = map[string]any{"large": strings.Repeat("x", values.MaxBytes), "deep": nested(40)}
	for _, test := range []struct {
		path, target, want string
		says               string
	}{
		{path: "spec.proxy", want: "http: hunter2"},
		{path: "data", want: "c: d"},
		{path: "spec.proxy.http", target: "env.PROXY", want: "env: {PROXY: hunter2}"},
		{path: "spec.list", target: "list", want: "list: [hunter2]"},
		{path: `spec.a\.b`, target: "x", want: "x: 1"},
		{path: "spec.other", says: "nothing there"},
		{path: "spec.none", says: "nothing there"},
		{path: "spec.list", says: "is not a map of keys to values"},
		{path: "spec.proxy.http.more", says: "is not a map"},
		{path: "spec.list[0]", target: "x", says: "index"},
		{path: "metadata.annotations", says: "does not begin with"},
		{path: "status.large", target: "x", says: "at most"},
		{path: "status.deep", says: "nested deeper"},
		{path: "spec.proxy", target: "kkp.x", says: "reserved"},
		{path: "spec.proxy", target: "x[1]", says: "index"},
	} {
		got, err := values.Part(object, &v1.ObjectReference{Path: test.path, TargetPath: test.target})
		if test.says != "" {
			if err == nil || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: %v, want %q", test.path, err, test.says)
			}
			if !errors.Is(err, values.ErrNoPart) && !values.IsInvalid(err) {
				t.Errorf("%s: %v is not about values", test.path, err)
			}
			continue
		}
		want, wrong := values.Decode([]byte(test.want))
		if diff := cmp.Diff(want, got); err != nil || wrong != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", test.path, err, diff)
		}
	}
	whole, err := values.Part(object, &v1.ObjectReference{})
	if err == nil && whole["proxy"] == nil {
		t.Errorf("without a path: %v, %v", whole, err)
	}
}

// canonical is a value as JSON, since numbers may have several types.
func canonical(t *testing.T, value any) string {
	t.Helper()
	encoded, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

func nested(depth int) any {
	if depth == 0 {
		return "hunter2"
	}
	return map[string]any{"a": nested(depth - 1)}
}

// TestCheckSources fails when a version may name an object of the core group, such as a Secret, or more objects than the
// schema allows.
func TestCheckSources(t *testing.T) {
	good := v1.ObjectReference{APIGroup: "network.example.com", Kind: "Egress", Name: "default", Path: "spec.proxy", TargetPath: "proxy"}
	version := func(change func(*v1.ObjectReference)) *v1.AddonVersion {
		ref := good
		change(&ref)
		return &v1.AddonVersion{ValuesFrom: []v1.VersionValuesSource{{ObjectRef: &ref}}}
	}
	if field, err := values.CheckVersion(version(func(*v1.ObjectReference) {})); err != nil {
		t.Errorf("%s: %v", field, err)
	}
	for says, made := range map[string]*v1.AddonVersion{
		"core group":           version(func(ref *v1.ObjectReference) { ref.APIGroup, ref.Kind = "", "Secret" }),
		"kind is empty":        version(func(ref *v1.ObjectReference) { ref.Kind = "" }),
		"name is empty":        version(func(ref *v1.ObjectReference) { ref.Name = "" }),
		"objectRef.path":       version(func(ref *v1.ObjectReference) { ref.Path = "metadata" }),
		"objectRef.targetPath": version(func(ref *v1.ObjectReference) { ref.TargetPath = "kkp" }),
		"is missing":           {ValuesFrom: make([]v1.VersionValuesSource, 1)},
		"at most 8":            {ValuesFrom: make([]v1.VersionValuesSource, 9)},
	} {
		if field, err := values.CheckVersion(made); err == nil || !strings.HasPrefix(field, "valuesFrom") || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %s, %v", says, field, err)
		}
	}
}

// TestDeploymentConfig fails when the values of an AddOnDeploymentConfig have other names than templates of Open Cluster
// Management use, when a field that is not set gives a value, and when an error has a value.
func TestDeploymentConfig(t *testing.T) {
	object := decoded(t, `
spec:
  agentInstallNamespace: elsewhere
  customizedVariables: [{name: Image, value: web:1}]
  nodePlacement:
    nodeSelector: {kubernetes.io/os: linux}
    tolerations: [{key: infra, operator: Exists, effect: NoSchedule}, {key: gone, tolerationSeconds: 7}]
  proxyConfig: {httpProxy: "http://proxy", noProxy: .svc, caBundle: Y2E=}
  registries: [{source: quay.io/web, mirror: mirror.example.com/web}]
  resourceRequirements: [{containerID: "deployments:*:web.a", resources: {limits: {memory: 1Gi}}}]
`)
	charts, mirrors, err := values.DeploymentConfig(object, true)
	want := decoded(t, `
Image: web:1
tolerations: [{key: infra, operator: Exists, effect: NoSchedule}, {key: gone, tolerationSeconds: 7}]
global:
  nodeSelector: {kubernetes.io/os: linux}
  proxyConfig: {HTTP_PROXY: "http://proxy", NO_PROXY: .svc, PROXY_CA_BUNDLE: ca}
  resourceRequirements: [{containerIDRegex: '^deployments:.+:web\.a$', resources: {limits: {memory: 1Gi}}}]
`)
	if diff := cmp.Diff(canonical(t, want), canonical(t, charts)); err != nil || diff != "" {
		t.Errorf("charts: %v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff(map[string]string{"quay.io/web": "mirror.example.com/web"}, mirrors); diff != "" {
		t.Errorf("mirrors (-want +got):\n%s", diff)
	}
	manifests, _, err := values.DeploymentConfig(object, false)
	want = decoded(t, `
Image: web:1
NodeSelector: {kubernetes.io/os: linux}
Tolerations:
- {Key: infra, Operator: Exists, Value: "", Effect: NoSchedule, TolerationSeconds: null}
- {Key: gone, Operator: "", Value: "", Effect: "", TolerationSeconds: 7}
HTTPProxy: http://proxy
NoProxy: .svc
ProxyCABundle: ca
ResourceRequirements: [{ContainerIDRegex: '^deployments:.+:web\.a$', Resources: {Limits: {memory: 1Gi}}}]
`)
	if diff := cmp.Diff(canonical(t, want), canonical(t, manifests)); err != nil || diff != "" {
		t.Errorf("manifests: %v (-want +got):\n%s", err, diff)
	}
	for _, isChart := range []bool{true, false} {
		if made, _, err := values.DeploymentConfig(decoded(t, "spec: {nodePlacement: {tolerations: []}}"), isChart); err != nil || len(made) > 0 {
			t.Errorf("an empty one: %v, %v", made, err)
		}
	}
	for says, spec := range map[string]string{
		"another type": "nodePlacement: hunter2", "registries[0]": "registries: [{mirror: hunter2}]",
		"containerID": "resourceRequirements: [{containerID: hunter2}]",
		"more than":   "customizedVariables: [{name: a, value: " + strings.Repeat("x", values.MaxBytes) + "}]",
	} {
		_, _, err := values.DeploymentConfig(decoded(t, "spec: {"+spec+"}"), true)
		if err == nil || !strings.Contains(err.Error(), says) || !values.IsInvalid(err) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", says, err)
		}
	}
}
