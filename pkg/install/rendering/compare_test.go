package rendering

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-addons/trellis/pkg/install/hooks"
)

func content(t *testing.T, objects []*unstructured.Unstructured, run []hooks.Hook) map[string]any {
	t.Helper()
	found, err := contentOf(objects, run)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestDifferencesHoldNoValue (V15): The difference of two renderings names objects. It has no value of a Secret, also
// not in base64. The test fails when an object is described by more than its name.
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

// TestDifferent fails when a hook that differs is not named, also if another one has the same name, or counts as an
// object; or when a hook of a test is named.
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

func TestByChance(t *testing.T) {
	type m = map[string]any
	type l = []any
	for _, test := range []struct {
		why                   string
		recorded, once, twice any
		want                  bool
	}{
		{"nothing differs", m{"a": "x"}, m{"a": "x"}, m{"a": "x"}, true},
		{"made up", m{"a": "x"}, m{"a": "y"}, m{"a": "z"}, true},
		{"changed", m{"a": "x"}, m{"a": "y"}, m{"a": "y"}, false},
		{"made up, and changed beside it", m{"a": "x", "b": "1"}, m{"a": "y", "b": "2"}, m{"a": "z", "b": "2"}, false},
		{"added", m{}, m{"a": "y"}, m{"a": "y"}, false},
		{"added by chance", m{}, m{"a": "y"}, m{}, true},
		{"removed", m{"a": "x"}, m{}, m{}, false},
		{"removed by chance", m{"a": "x"}, m{}, m{"a": "x"}, true},
		{"a name that is made up", m{"job-1": "x"}, m{"job-2": "x"}, m{"job-3": "x"}, true},
		{"added beside a name that is made up", m{"job-1": "x"}, m{"job-2": "x", "a": "y"}, m{"job-3": "x", "a": "y"}, false},
		{"an element", l{"a", "x"}, l{"a", "y"}, l{"a", "z"}, true},
		{"an element that is changed", l{"a", "x"}, l{"b", "y"}, l{"b", "z"}, false},
		{"one more", l{"a"}, l{"a", "b"}, l{"a", "b"}, false},
		{"so many by chance", l{"a"}, l{"a", "b"}, l{}, true},
		{"another kind of value", m{"a": m{}}, m{"a": "y"}, m{"a": "y"}, false},
		{"null", m{"a": nil}, m{"a": "y"}, m{"a": "y"}, false},
	} {
		if got := byChance(test.recorded, test.once, test.twice); got != test.want {
			t.Errorf("%s: %t, want %t", test.why, got, test.want)
		}
	}
}
