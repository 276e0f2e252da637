package apply_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/test/lab"
	"github.com/trellis-addons/trellis/test/long"
)

var preparing = ownership.Owner{ClusterUID: "5f3d", Installation: "web"}

// fixedMapper has a handful of kinds; Prepare is pure and calls no API server.
func fixedMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"ConfigMap", "Secret", "ServiceAccount"} {
		mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: kind}, meta.RESTScopeNamespace)
	}
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, meta.RESTScopeRoot)
	mapper.Add(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, meta.RESTScopeRoot)
	return mapper
}

func parse(t *testing.T, manifests string) (objects []*unstructured.Unstructured) {
	t.Helper()
	return (&lab.Lab{T: t, Unique: "shop"}).Objects(manifests)
}

// AC44: Fields that the API server owns, or that decide about removal, are removed from rendered objects. It fails, in
// the order of the cases, if: cleanMetadata copies everything; defaultNamespace ignores the scope; DeclaredKinds is
// empty; unknown kinds are guessed; stringData stays; lists stay; Helm's marks are left out; Skip or Create is ignored.
func TestPrepare(t *testing.T) {
	id := preparing.ID()
	for name, test := range map[string]struct {
		manifests string
		options   apply.Options
		want      string
		why       string
	}{
		"server's metadata": {
			manifests: `apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: b, uid: x, resourceVersion: "3", generation: 2, creationTimestamp: null, generateName: c-,
  finalizers: [x/y], ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: q}], managedFields: [{manager: m}],
  labels: {app: a}, annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}}
data: {k: v}
status: {ready: true}`,
			want: `[{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b, labels: {app: a, LABEL}}, data: {k: v}}]`,
			why:  "what the server owns or what decides about removal is taken off",
		},
		"namespaces": {
			manifests: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n" +
				"{apiVersion: v1, kind: Namespace, metadata: {name: other, namespace: wrong}}",
			want: `[{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, labels: {LABEL}}},
  {apiVersion: v1, kind: Namespace, metadata: {name: other, labels: {addons.kubermatic.k8c.io/created-by: ID, LABEL}}}]`,
			why: "the live scope decides",
		},
		"kinds of the same add-on": {
			manifests: "{apiVersion: x.example.com/v1, kind: Widget, metadata: {name: a}}\n---\n" +
				"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.x.example.com}, spec: " +
				"{group: x.example.com, scope: Namespaced, names: {kind: Widget, plural: widgets}, versions: [{name: v1, served: true}]}}",
			want: `[{apiVersion: x.example.com/v1, kind: Widget, metadata: {name: a, namespace: shop, labels: {LABEL}}},
  {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.x.example.com, labels: {LABEL}}, spec:
  {group: x.example.com, scope: Namespaced, names: {kind: Widget, plural: widgets}, versions: [{name: v1, served: true}]}}]`,
			why: "no API server knows the kind yet",
		},
		"unknown kind": {
			manifests: "{apiVersion: y.example.com/v1, kind: Gadget, metadata: {name: a}}",
			want:      `[{apiVersion: y.example.com/v1, kind: Gadget, metadata: {name: a, labels: {LABEL}}}]`,
			why:       "its scope is not guessed",
		},
		"stringData": {
			manifests: `{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {k: b2xk, l: b2xk}, stringData: {k: new}}`,
			want:      `[{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: shop, labels: {LABEL}}, data: {k: bmV3, l: b2xk}}]`,
			why:       "server-side apply does not know that stringData becomes data",
		},
		"list": {
			manifests: `{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}`,
			want:      `[{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, labels: {LABEL}}}]`,
			why:       "a List is no object",
		},
		"helm": {
			manifests: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`,
			options:   apply.Options{CreateNamespace: true, Helm: &ownership.HelmMarks{ReleaseName: "r", ReleaseNamespace: "shop"}},
			want: `[{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {addons.kubermatic.k8c.io/created-by: ID, LABEL}}},
  {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, labels: {app.kubernetes.io/managed-by: Helm, LABEL},
  annotations: {meta.helm.sh/release-name: r, meta.helm.sh/release-namespace: shop}}}]`,
			why: "Helm can take over, but the namespace is no part of its release",
		},
		"skipped definitions": {
			manifests: `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: w.x}}`,
			options:   apply.Options{CRDs: kubermaticv1.CRDSkip}, want: `[]`, why: "crds.apply: Skip",
		},
		"definitions made once": {
			manifests: `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: w.x}}`,
			options:   apply.Options{CRDs: kubermaticv1.CRDCreate},
			want: `[{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: w.x, labels: {LABEL},
  annotations: {addons.kubermatic.k8c.io/update: create-only}}}]`,
			why: "crds.apply: Create",
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.options.Owner, test.options.TargetNamespace = preparing, "shop"
			given := parse(t, test.manifests)
			prepared, err := apply.Prepare(given, fixedMapper(), test.options)
			if err != nil {
				t.Fatal(err)
			}
			text := strings.ReplaceAll(strings.ReplaceAll(test.want, "LABEL", "addons.kubermatic.k8c.io/installation: ID"), "ID", id)
			var want []map[string]any
			if err := yaml.Unmarshal([]byte(text), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, contents(prepared)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.why, diff)
			}
			if diff := cmp.Diff(contents(parse(t, test.manifests)), contents(given)); diff != "" {
				t.Errorf("the input was changed:\n%s", diff)
			}
			again, err := apply.Prepare(prepared, fixedMapper(), test.options)
			if err != nil || apply.ObjectsDigest(again) != apply.ObjectsDigest(prepared) {
				t.Errorf("twice is not once: %v", err)
			}
		})
	}
}

func contents(objects []*unstructured.Unstructured) []map[string]any {
	all := []map[string]any{}
	for _, object := range objects {
		all = append(all, object.Object)
	}
	return all
}

// AC44, AC46: Objects without a fixed name, too many of them and too large ones are refused. It fails if a check is
// left out.
func TestPrepareRefuses(t *testing.T) {
	long.Heavy(t)
	many := make([]string, ownership.MaxObjects+1)
	for i := range many {
		many[i] = fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: a%d}}", i)
	}
	big := func(name string) string {
		filler := strings.Repeat("x", apply.MaxObjectBytes-400)
		return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {k: %s}}", name, filler)
	}
	sixteen := make([]string, 17)
	for i := range sixteen {
		sixteen[i] = big(fmt.Sprintf("a%d", i))
	}
	for name, test := range map[string]struct {
		manifests string
		is        func(error) bool
	}{
		"too many":     {strings.Join(many, "\n---\n"), isA[*apply.LimitError]},
		"one too big":  {strings.Replace(big("a"), "k: ", "k: "+strings.Repeat("y", 400), 1), isA[*apply.LimitError]},
		"too big":      {strings.Join(sixteen, "\n---\n"), isA[*apply.LimitError]},
		"twice":        {many[0] + "\n---\n" + many[0], isA[*apply.DuplicateError]},
		"no name":      {"{apiVersion: v1, kind: ConfigMap, metadata: {generateName: a-}}", isA[*apply.ObjectError]},
		"no kind":      {"{apiVersion: v1, metadata: {name: a}}", isA[*apply.ObjectError]},
		"a path":       {"{apiVersion: v1, kind: ConfigMap, metadata: {name: ../secrets/x}}", isA[*apply.ObjectError]},
		"a dotted way": {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ..}}", isA[*apply.ObjectError]},
		"bad labels":   {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {b: 1}}}", isA[*apply.ObjectError]},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := apply.Prepare(parse(t, test.manifests), fixedMapper(), apply.Options{Owner: preparing, TargetNamespace: "shop"})
			if err == nil || !test.is(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func isA[E error](err error) bool {
	var target E
	return errors.As(err, &target)
}

// TestObjectsDigest fails if the digest does not cover content or order.
func TestObjectsDigest(t *testing.T) {
	one := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: "1", y: "2"}}`)
	same := parse(t, `{data: {y: "2", x: "1"}, kind: ConfigMap, metadata: {name: a}, apiVersion: v1}`)
	other := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: "1", y: "3"}}`)
	if apply.ObjectsDigest(one) != apply.ObjectsDigest(same) {
		t.Error("the order of keys counts")
	}
	if apply.ObjectsDigest(one) == apply.ObjectsDigest(other) {
		t.Error("content does not count")
	}
	if apply.ObjectsDigest(append(one, other...)) == apply.ObjectsDigest(append(other, one...)) {
		t.Error("order does not count")
	}
}
