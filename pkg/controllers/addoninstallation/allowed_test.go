package addoninstallation

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/release"
)

// AC40, AC41. Red, in the order of the cases, when problemOf does not look at: an object's namespace; a Namespace's name; its
// labels. The last cases are red when it looks at more than that.
func TestAC40AC41WhatOnlyCoreCataloguesGet(t *testing.T) {
	for _, test := range []struct{ why, manifest, refused string }{
		{"in a namespace of the cluster", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: kube-system}}`, "ConfigMap kube-system/a"},
		{"rights there", `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a, namespace: kube-public}}`,
			"RoleBinding kube-public/a"},
		{"of a kind nobody knows", `{apiVersion: x.example.com/v1, kind: Widget, metadata: {name: a, namespace: kube-x}}`, "Widget kube-x/a"},
		{"such a namespace", `{apiVersion: v1, kind: Namespace, metadata: {name: kube-flannel}}`, "Namespace kube-flannel"},
		{"pod security", `{apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {pod-security.kubernetes.io/enforce: privileged}}}`,
			"Namespace a"},
		{"a namespace of its own", `{apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {app: a}}}`, ""},
		{"a name like that elsewhere", `{apiVersion: v1, kind: ConfigMap, metadata: {name: kube-a, namespace: a}}`, ""},
		{"the labels where they mean nothing", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: a, labels: ` +
			`{pod-security.kubernetes.io/enforce: privileged}}}`, ""},
		{"rights over all, which the catalogue's admin answers for", `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, ` +
			`metadata: {name: a}}`, ""},
	} {
		t.Run(test.why, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(test.manifest), &object.Object); err != nil {
				t.Fatal(err)
			}
			err := checkObjects([]*unstructured.Unstructured{{Object: map[string]any{"kind": "List"}}, object})
			var refused *NotAllowedError
			if errors.As(err, &refused) != (test.refused != "") || refused != nil && refused.Subject != test.refused {
				t.Errorf("got %v, want %q refused", err, test.refused)
			}
		})
	}
}

// Red when allowed does not look at the catalogue's type or at hooks, or holds up what is applied already or under way.
func TestAC40OnlyNewThingsOfCustomCatalogues(t *testing.T) {
	for _, test := range []struct {
		why     string
		change  func(*facts)
		refused bool
	}{
		{"Custom", func(*facts) {}, true},
		{"Core", func(f *facts) { f.core = true }, false},
		{"unchanged", func(f *facts) { f.unchanged = true }, false},
		{"under way", func(f *facts) { f.rollingOut = true }, false},
		{"another target", func(f *facts) { f.installation.Spec.TargetNamespace = "shop" }, false},
		{"a hook", func(f *facts) {
			f.installation.Spec.TargetNamespace = "shop"
			f.hooks = []release.Hook{{Object: []byte(`{"kind": "Job", "metadata": {"name": "a", "namespace": "kube-system"}}`)}}
		}, true},
	} {
		f := &facts{installation: &kubermaticv1.AddonInstallation{}}
		f.installation.Spec.TargetNamespace = "kube-system"
		test.change(f)
		stalled, refused := (&Reconciler{}).allowed(t.Context(), f).(loop.Stalled)
		if refused != test.refused || refused && (stalled.Reason != "NotAllowed" || stalled.Condition != "Rendered") {
			t.Errorf("%s: got %+v, want refused: %t", test.why, stalled, test.refused)
		}
	}
}
