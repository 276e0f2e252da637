package addoninstallation

import (
	"encoding/base64"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
)

// V15: What tells the difference of two renderings names objects, and no value of a Secret, also
// not in base64. Red when the event has more of an object than its name.
func TestDifferencesHoldNoValue(t *testing.T) {
	secret := func(password string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "login", "namespace": "apps"},
			"data":       map[string]any{"password": base64.StdEncoding.EncodeToString([]byte(password))},
			"stringData": map[string]any{"again": password},
		}}
	}
	recorder := events.NewFakeRecorder(1)
	r := New(Dependencies{Recorder: recorder})
	f := factsToPrepare()
	f.inputs = "inputs"
	before, after := []*unstructured.Unstructured{secret("hunter2")}, []*unstructured.Unstructured{secret("hunter3")}
	r.warnOfChanges(f, different(digestsOf(before, nil), digestsOf(after, nil)))
	told := <-recorder.Events
	if !strings.Contains(told, "Secret apps/login") {
		t.Errorf("the event does not name the Secret: %s", told)
	}
	for _, value := range []string{"hunter", base64.StdEncoding.EncodeToString([]byte("hunter2")), base64.StdEncoding.EncodeToString([]byte("hunter3"))} {
		if strings.Contains(told, value) {
			t.Errorf("the event holds %q: %s", value, told)
		}
	}
}
