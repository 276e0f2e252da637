package apply_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/test/fleet"
)

// Red when a namespace of ours goes with data that a hook made, with what is to stay, or with what only looks like a hook of
// ours; and when it stays for other leftovers of hooks.
func TestNamespaceStaysForWhatHooksKeep(t *testing.T) {
	const claim = `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: left, annotations: {helm.sh/hook: pre-install}}, ` +
		`spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`
	leftover := func(annotation string) string {
		return `{apiVersion: v1, kind: ConfigMap, metadata: {name: left, annotations: {helm.sh/hook: pre-install` + annotation + `}}}`
	}
	for name, test := range map[string]struct {
		hook          string
		foreign, goes bool
	}{
		"leftover": {hook: leftover(""), goes: true},
		"keep":     {hook: leftover(", helm.sh/resource-policy: keep")},
		"orphan":   {hook: leftover(`, addons.kubermatic.k8c.io/on-delete: orphan`)},
		"data":     {hook: claim},
		"forged":   {hook: leftover(""), foreign: true},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			inventory := l.install(l.prepare(settings, createNamespace), nil)
			hook := l.prepare(test.hook)[0]
			if test.foreign {
				l.createObject(configMaps, l.name, hook)
			} else if uid, refused, err := apply.MakeHook(t.Context(), l.target, l.owner, apply.Hook{Object: hook, Run: "1"}); err != nil || uid == "" {
				t.Fatalf("%s: %v", refused, err)
			}
			l.remove(inventory, apply.RemoveOptions{Namespace: l.name})
			if gone := l.get(namespaces, "", l.name) == nil; gone != test.goes {
				t.Errorf("the namespace is gone: %t, want %t", gone, test.goes)
			}
		})
	}
}

// Red when an answer about a hook is told with what the hook holds.
func TestAnswersAboutHooksAreMasked(t *testing.T) {
	l := newLab(t)
	config := rest.CopyConfig(fleet.Shared().Cluster("user").Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			body := `{"kind":"Status","apiVersion":"v1","status":"Failure","code":503,"reason":"ServiceUnavailable","message":"can't take swordfish"}`
			return &http.Response{
				StatusCode: http.StatusServiceUnavailable, Request: request, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(bytes.NewBufferString(body)),
			}, nil
		})
	})
	l.target.Dynamic = must(dynamic.NewForConfig(config))(t)
	hook := apply.Hook{Object: l.prepare(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {password: swordfish}}`)[0], Run: "1"}
	_, _, err := apply.MakeHook(t.Context(), l.target, l.owner, hook)
	dropped := apply.DropHook(t.Context(), l.target, hook, "uid")
	for _, failure := range []error{err, dropped} {
		if failure == nil || strings.Contains(failure.Error(), "swordfish") || !strings.Contains(failure.Error(), "can't take ***") {
			t.Errorf("got %v", failure)
		}
	}
}

// Red when an object that was made as a hook, and is an object of the add-on now, is refused or conflicts with itself; when what
// made it a hook stays on it; and when a field that the add-on dropped stays.
func TestHookBecomesAnObject(t *testing.T) {
	l := newLab(t)
	l.namespace()
	hook := l.prepare(`{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, annotations: {helm.sh/hook: pre-install}}, ` +
		`data: {old: "1", color: blue}}`)[0]
	uid, _, err := apply.MakeHook(t.Context(), l.target, l.owner, apply.Hook{Object: hook, Run: "1"})
	if err != nil {
		t.Fatal(err)
	}
	inventory := l.install(l.prepare(`{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: red}}`), nil)
	live := l.get(configMaps, l.name, "settings")
	if inventory[0].UID != uid || live.GetUID() != uid {
		t.Errorf("the object was made anew: %v", inventory)
	}
	if len(live.GetAnnotations()) != 0 {
		t.Errorf("it is still a hook: %v", live.GetAnnotations())
	}
	if data, _, _ := unstructured.NestedStringMap(live.Object, "data"); len(data) != 1 || data["color"] != "red" {
		t.Errorf("its data is %v", data)
	}
}
