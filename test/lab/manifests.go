package lab

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-addons/trellis/pkg/clusters/calls"
)

// NestedInt reads a number out of an object.
func NestedInt(object *unstructured.Unstructured, fields ...string) (int64, bool, error) {
	return unstructured.NestedInt64(object.Object, fields...)
}

// TwoMaps are Settings and another ConfigMap, for tests that take one of two away.
const TwoMaps = Settings + "\n---\n" + `apiVersion: v1
kind: ConfigMap
metadata: {name: other}
data: {shape: round}`

// Job is one whose template can't be changed once it is there.
const Job = `apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  template: {spec: {restartPolicy: Never, containers: [{name: once, image: "example.com/once:1"}]}}`

// SettingsAndClaims are objects of two kinds, for tests of how kinds are listed.
const SettingsAndClaims = Settings + `
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: one}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: two}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: three}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}`

// ExpectMisbehaviour fails unless the error blames the server, in words of bounded length.
func ExpectMisbehaviour(t *testing.T, what string, err error) {
	t.Helper()
	var misbehaved *calls.MisbehavesError
	switch {
	case !errors.As(err, &misbehaved):
		t.Errorf("%s: %v, expected a MisbehavesError", what, err)
	case len(err.Error()) > 600:
		t.Errorf("%s: the error has %d bytes", what, len(err.Error()))
	}
}

// PodsOf is the resource of the pods that a workload's controller makes.
var PodsOf = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// NestedString reads a text out of an object.
func NestedString(object *unstructured.Unstructured, fields ...string) (string, bool, error) {
	return unstructured.NestedString(object.Object, fields...)
}

// Claim, put behind other manifests, claims a volume: nothing deletes it unasked, nor makes it anew.
const Claim = "\n---\n" + `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}`

// Widgets sort the custom resource before its definition, and both before their namespace.
const Widgets = `apiVersion: NAME.example.com/v1
kind: Widget
metadata: {name: first, namespace: NAME}
spec: {size: 3}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.NAME.example.com, creationTimestamp: null}
spec:
  group: NAME.example.com
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
status: {storedVersions: []}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: green}
---
apiVersion: v1
kind: Namespace
metadata: {name: NAME}
`

// Settings is the simplest object there is: a ConfigMap with one value.
const Settings = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: green}`

// Deployment is a workload of one pod, with a secret value that must not be told.
const Deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "example.com/web:1", env: [{name: KEY, value: hunter-two}]}]}`

// Definition is a CustomResourceDefinition of the test's group; version is a version of it besides v1.
func Definition(kind, scope, version string) string {
	second := ""
	if version != "" {
		second = "\n  - {name: " + version + ", served: true, storage: false, schema: {openAPIV3Schema: {type: object, " +
			"x-kubernetes-preserve-unknown-fields: true}}}"
	}
	plural := strings.ToLower(kind) + "s"
	return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ` + plural + `.NAME.example.com}
spec:
  group: NAME.example.com
  names: {kind: ` + kind + `, plural: ` + plural + `}
  scope: ` + scope + `
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}` + second
}

// Custom is an object of a kind that Definition defines.
func Custom(kind, version, name string) string {
	return fmt.Sprintf("apiVersion: NAME.example.com/%s\nkind: %s\nmetadata: {name: %s}\nspec: {size: 3}", version, kind, name)
}

// Manifests are these texts as one.
func Manifests(texts ...string) string { return strings.Join(texts, "\n---\n") }
