package rendering

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-addons/trellis/pkg/hooks"
)

func content(t *testing.T, objects []*unstructured.Unstructured, run []hooks.Hook) map[string]any {
	t.Helper()
	found, err := contentOf(objects, run)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// V15: What tells the difference of two renderings names objects, and no value of a Secret, also
// not in base64. Red when an object is named by more than its name.
func TestDifferencesHoldNoValue(t *testing.T) {
	secret := func(password string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "login", "namespace": "apps"},
			"data":       map[string]any{"password": base64.StdEncoding.EncodeToString([]byte(password))},
			"stringData": map[string]any{"again": password},
		}}
	}
	before, after := []*unstructured.Unstructured{secret("hunter2")}, []*unstructured.Unstructured{secret("hunter3")}
	named := strings.Join(different(content(t, before, nil), content(t, after, nil)), ", ")
	if !strings.Contains(named, "Secret apps/login") {
		t.Errorf("what is named does not name the Secret: %s", named)
	}
	for _, value := range []string{"hunter", base64.StdEncoding.EncodeToString([]byte("hunter2")), base64.StdEncoding.EncodeToString([]byte("hunter3"))} {
		if strings.Contains(named, value) {
			t.Errorf("what is named holds %q: %s", value, named)
		}
	}
}

// Red when a hook that comes out otherwise is not named, also where another one is called the same, or counts as an object; or when
// one of a test is named.
func TestDifferent(t *testing.T) {
	hooks := func(text string) []hooks.Hook {
		object := `{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"namespace": "n", "name": "a", "labels": {"text": "` + text + `"}}}`
		return []hooks.Hook{
			{Path: "templates/a.yaml", Events: []string{"pre-install"}, Object: json.RawMessage(object)},
			{Path: "templates/a.yaml", Events: []string{"pre-install"}, Object: json.RawMessage(strings.ReplaceAll(object, text, "same"))},
			{Path: "templates/b.yaml", Events: []string{"pre-install"}, Object: json.RawMessage(`{"apiVersion": "v1", "kind": "Pod"}`)},
			{Path: "templates/c.yaml", Events: []string{"test"}, Object: json.RawMessage(object)},
		}
	}
	before := []*unstructured.Unstructured{configMap("same", "x"), configMap("other", "1"), configMap("gone", "")}
	after := []*unstructured.Unstructured{configMap("new", ""), configMap("other", "2"), configMap("same", "x")}
	want := []string{"ConfigMap n/gone", "ConfigMap n/new", "ConfigMap n/other", "hook Job n/a of templates/a.yaml"}
	if diff := cmp.Diff(want, different(content(t, before, hooks("one")), content(t, after, hooks("two")))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
