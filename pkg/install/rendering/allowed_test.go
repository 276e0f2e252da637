package rendering

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// The results of a check: allowed, always refused, or refused by a restriction.
const (
	never   = ""
	always  = "belongs to the cluster"
	byKube  = "--restrict-custom-addons=kube-namespaces"
	byLevel = "--restrict-custom-addons=pod-security"
)

// TestCustomAddonMayNotWriteKubeNamespaces (AC40, AC41): Under restrictions, an add-on of a Custom catalogue writes
// neither to Kubernetes' own namespaces nor labels of pod security. It fails, in the order of the cases, when
// problemOf does not check an object's namespace; a Namespace's name; its labels; and when it refuses without the
// restriction. The last cases fail when it checks more than that.
func TestCustomAddonMayNotWriteKubeNamespaces(t *testing.T) {
	for _, test := range []struct{ why, manifest, refused, by string }{
		{"in a namespace of the cluster", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: kube-system}}`,
			"ConfigMap kube-system/a", byKube},
		{"rights there", `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a, namespace: kube-public}}`,
			"RoleBinding kube-public/a", byKube},
		{"of a kind nobody knows", `{apiVersion: x.example.com/v1, kind: Widget, metadata: {name: a, namespace: kube-node-lease}}`,
			"Widget kube-node-lease/a", byKube},
		{"such a namespace", `{apiVersion: v1, kind: Namespace, metadata: {name: kube-system, labels: ` +
			`{pod-security.kubernetes.io/enforce: privileged}}}`, "Namespace kube-system", always},
		{"pod security", `{apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {pod-security.kubernetes.io/enforce: privileged}}}`,
			"Namespace a", byLevel},
		{"a name like the cluster's", `{apiVersion: v1, kind: Namespace, metadata: {name: kube-state-metrics}}`, "", never},
		{"something in it", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: kube-state-metrics}}`, "", never},
		{"a namespace of its own", `{apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {app: a}}}`, "", never},
		{"a name like that elsewhere", `{apiVersion: v1, kind: ConfigMap, metadata: {name: kube-a, namespace: a}}`, "", never},
		{"the labels where they mean nothing", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: a, labels: ` +
			`{pod-security.kubernetes.io/enforce: privileged}}}`, "", never},
		{"rights over all, which the catalogue's admin answers for", `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, ` +
			`metadata: {name: a}}`, "", never},
	} {
		t.Run(test.why, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(test.manifest), &object.Object); err != nil {
				t.Fatal(err)
			}
			for _, restrictions := range []catalogue.Restrictions{{}, {KubeNamespaces: true}, {PodSecurity: true}} {
				err := Allowed("", []*unstructured.Unstructured{{Object: map[string]any{"kind": "List"}}, object}, restrictions)
				var refused *NotAllowedError
				want := test.by == always || restrictions.KubeNamespaces && test.by == byKube || restrictions.PodSecurity && test.by == byLevel
				if errors.As(err, &refused) != want {
					t.Errorf("with %+v: got %v, want %q refused by %q", restrictions, err, test.refused, test.by)
				}
				if refused != nil && (refused.Subject != test.refused || !strings.Contains(refused.Problem, test.by)) {
					t.Errorf("with %+v: got %v, want %q refused by %q", restrictions, err, test.refused, test.by)
				}
			}
		})
	}
}
