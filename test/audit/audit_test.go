package audit

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const roles = `
- {kind: ClusterRole, metadata: {name: a}, rules: [
    {apiGroups: [""], resources: [secrets], verbs: [get, list]},
    {apiGroups: [example.com], resources: [things/status], resourceNames: [first, second], verbs: [patch]}]}
- {kind: ClusterRoleBinding, metadata: {name: a}, roleRef: {kind: ClusterRole, name: a}, subjects: [{namespace: home, name: one}]}
- {kind: Role, metadata: {name: a, namespace: home}, rules: [{apiGroups: [""], resources: [secrets], verbs: [get, create]}]}
- {kind: RoleBinding, metadata: {name: a, namespace: home}, roleRef: {kind: Role, name: a}, subjects: [{namespace: home, name: one}]}
- {kind: RoleBinding, metadata: {name: b, namespace: home}, roleRef: {kind: ClusterRole, name: b}, subjects: [{namespace: home, name: other}]}
`

func granted(t *testing.T) []Right {
	t.Helper()
	var read []map[string]any
	if err := yaml.Unmarshal([]byte(roles), &read); err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for _, object := range read {
		objects = append(objects, &unstructured.Unstructured{Object: object})
	}
	rights, err := Granted(objects, "home:one")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Granted(objects, "home:other"); err == nil {
		t.Error("a binding names a role that is not there, and nobody says so")
	}
	return rights
}

// Red when a right is left out, or is another's.
func TestRightsAreThoseOfBoundRoles(t *testing.T) {
	want := []Right{
		{"", "secrets", "get", ""}, {"", "secrets", "list", ""},
		{"", "things/status.example.com", "patch", "first"}, {"", "things/status.example.com", "patch", "second"},
		{"home", "secrets", "get", ""}, {"home", "secrets", "create", ""},
	}
	if diff := cmp.Diff(want, granted(t)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

const log = `{"verb":"get","requestURI":"/apis","user":{"username":"u"},"responseStatus":{"code":200}}
{"verb":"get","requestURI":"/1","user":{"username":"u"},"objectRef":{"resource":"secrets","namespace":"home","name":"s"},"responseStatus":{"code":404}}
{"verb":"patch","requestURI":"/2","user":{"username":"u"},"objectRef":{"resource":"things","subresource":"status","apiGroup":"example.com","name":"second"},"responseStatus":{"code":200}}
{"verb":"create","requestURI":"/3","user":{"username":"u"},"objectRef":{"resource":"secrets","namespace":"other"},"responseStatus":{"code":403}}
{"verb":"create","requestURI":"/4","user":{"username":"other"},"objectRef":{"resource":"secrets","namespace":"home"},"responseStatus":{"code":201}}
{"verb":"patch","requestURI":"/5","user":{"username":"u"},"objectRef":{"resource":"things","subresource":"status","apiGroup":"example.com","name":"z"},"responseStatus":{"code":200}}
{"verb":"create","requestURI":"/6","user":{"username":"u"},"objectRef":{"resource":"secrets","namespace":"other"},"responseStatus":{"code":201}}
{"verb":"patch","requestURI":"/7","user":{"username":"u"},"objectRef":{"resource":"things","subresource":"status","apiGroup":"example.com","name":"second"},"responseStatus":{"code":403,"message":"unable to create new content in namespace a because it is being terminated"}}
`

// Red when a refused call is not seen, a right counts that no call used or that another has in it, or a call counts by a right for
// another name, namespace or subresource.
func TestCallsArePutAgainstRights(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(path, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	events, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	refused, foreign, spare := Replay(events, "u", granted(t))
	uris := func(of []Event) (uris []string) {
		for _, event := range of {
			uris = append(uris, event.RequestURI)
		}
		return uris
	}
	if diff := cmp.Diff([]string{"/3"}, uris(refused)); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"/5", "/6"}, uris(foreign)); diff != "" {
		t.Errorf("foreign (-want +got):\n%s", diff)
	}
	want := []Right{
		{"", "secrets", "list", ""}, {"", "things/status.example.com", "patch", "first"}, {"home", "secrets", "get", ""}, {"home", "secrets", "create", ""},
	}
	if diff := cmp.Diff(want, spare); diff != "" {
		t.Errorf("spare (-want +got):\n%s", diff)
	}
}
