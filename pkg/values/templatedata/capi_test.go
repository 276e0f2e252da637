package templatedata_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/pkg/values/templatedata"
)

func provided(status map[string]any, annotations map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": "example.com/v1", "kind": "Plane", "status": status,
		"metadata": map[string]any{
			"name": "one", "namespace": "team", "uid": "u", "resourceVersion": "7", "generation": int64(3), "labels": map[string]any{"ring": "0"},
			"annotations": annotations, "managedFields": []any{map[string]any{"manager": "m"}}, "finalizers": []any{"f"},
		},
		"spec": map[string]any{"replicas": int64(3), "conditions": "of a spec", "files": []any{map[string]any{"path": "/a", "size": 0.5}}},
	}
}

// Red when a valuesTemplate sees more or less of an object of Cluster API than is said, or when what goes on changing in a status makes a
// difference.
func TestObjectsOfClusterAPIAsTemplatesSeeThem(t *testing.T) {
	packed, err := templatedata.PackCAPI(provided(map[string]any{
		"ready": true, "phase": "Up", "observedGeneration": int64(2), "replicas": int64(1), "versions": []any{map[string]any{"version": "v1", "replicas": int64(1)}},
		"workers":    map[string]any{"readyReplicas": int64(1)},
		"deprecated": map[string]any{"v1beta1": map[string]any{"conditions": []any{"a"}}, "of": "x"}, "conditions": []any{map[string]any{"type": "A"}},
	}, map[string]any{
		"note": "1", "runtime.cluster.x-k8s.io/pending-hooks": "x", "cluster.x-k8s.io/managed-by": "y", "kubectl.kubernetes.io/last-applied-configuration": "{}",
	}))
	if err != nil {
		t.Fatal(err)
	}
	got, err := templatedata.UnpackCAPI(packed)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "example.com/v1", "kind": "Plane",
		"metadata": map[string]any{"name": "one", "namespace": "team", "labels": map[string]any{"ring": "0"}, "annotations": map[string]any{"note": "1"}},
		"spec":     map[string]any{"replicas": int64(3), "conditions": "of a spec", "files": []any{map[string]any{"path": "/a", "size": 0.5}}},
		"status": map[string]any{
			"ready": true, "phase": "Up", "versions": []any{map[string]any{"version": "v1"}}, "deprecated": map[string]any{"of": "x"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	before, err := templatedata.PackCAPI(provided(nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	after, err := templatedata.PackCAPI(provided(map[string]any{"conditions": []any{}, "workers": map[string]any{"replicas": int64(1)}}, map[string]any{
		"before-upgrade.hook.cluster.cluster.x-k8s.io/trellis": "",
	}))
	if err != nil || string(before) != string(after) {
		t.Errorf("what goes on makes a difference: %v, %s, %s", err, before, after)
	}
}

// Red when an object is kept that is too large, too deep, or has too many pieces; or one that isn't is refused.
func TestObjectsOfClusterAPIAreBounded(t *testing.T) {
	deep := map[string]any{}
	for range 100 {
		deep = map[string]any{"a": deep}
	}
	long := make([]any, 256<<10)
	wide := map[string]any{}
	for i := range 40_000 {
		wide[fmt.Sprintf("key-%d", i)] = nil
	}
	for name, value := range map[string]any{
		"a text": strings.Repeat("x", 256<<10), "what is longer as JSON": strings.Repeat("\x01", 100<<10), "deep": deep, "a list": long, "a map": wide,
	} {
		for _, place := range []string{"spec", "status", "metadata"} {
			object := provided(map[string]any{}, map[string]any{})
			if object[place].(map[string]any)["of"] = value; place == "metadata" {
				object["metadata"].(map[string]any)["labels"] = map[string]any{"of": value}
			}
			packed, err := templatedata.PackCAPI(object)
			if tooLarge, is := errors.AsType[*templatedata.CAPITooLargeError](err); !is || !strings.Contains(tooLarge.Error(), "256 KiB") {
				t.Errorf("%s in %s: %v, %d bytes", name, place, err, len(packed))
			}
		}
	}
	object := provided(nil, nil)
	object["spec"] = map[string]any{"of": strings.Repeat("x", 255<<10)}
	if _, err := templatedata.PackCAPI(object); err != nil {
		t.Error(err)
	}
}

// Red when a template that names an object of Cluster API is taken for one that does not, by whichever way it names it, or when one that
// names none has them read.
func TestWhatTemplatesNameOfClusterAPI(t *testing.T) {
	none, capi := templatedata.CAPINames{}, templatedata.CAPINames{CAPI: true}
	plane := templatedata.CAPINames{CAPI: true, ControlPlane: true}
	infra := templatedata.CAPINames{CAPI: true, InfraCluster: true}
	for text, want := range map[string]templatedata.CAPINames{
		"":                              none,
		"a: {{ .Cluster.Name }}":        none,
		"# .CAPI.ControlPlane\na: CAPI": none,
		"{{/* .CAPI.ControlPlane */}}":  none,
		"{{ .ControlPlane }}":           none,
		"{{ .CAPI":                      none,
		"{{ with .CAPI }}{{ .Cluster.spec }}{{ end }}":                                                  capi,
		"controlPlane: {{ .CAPI.Variables.ControlPlaneSize }}":                                          capi,
		"{{ with .CAPI }}a: {{ .ControlPlane.spec.port }}{{ end }}":                                     plane,
		"{{ $x := .CAPI }}{{ if $x.ControlPlane }}a: 1{{ end }}":                                        plane,
		`{{ (index .CAPI "ControlPlane").spec.port }}`:                                                  plane,
		`{{ dig "InfraCluster" "spec" "backend" "none" .CAPI }}`:                                        infra,
		`{{ range .CAPI.Cluster.spec.list }}{{ else }}{{ $.CAPI.InfraCluster.kind }}{{ end }}`:          infra,
		`{{ define "x" }}{{ .InfraCluster.kind | quote }}{{ end }}{{ template "x" .CAPI }}`:             infra,
		`{{ if eq 1 2 }}{{ else if (printf "%v" .CAPI.InfraCluster | trim) }}{{ unknownYet }}{{ end }}`: infra,
	} {
		if got := templatedata.NamedOfCAPI(text); got != want {
			t.Errorf("%q: got %+v, want %+v", text, got, want)
		}
	}
	both := templatedata.NamedOfCAPI("{{ .CAPI.ControlPlane }}", "{{ .CAPI.InfraCluster }}")
	if want := (templatedata.CAPINames{CAPI: true, ControlPlane: true, InfraCluster: true}); both != want {
		t.Errorf("of two templates: %+v", both)
	}
}
