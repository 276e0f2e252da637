package addoninstallation

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/hooks"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/revision"
)

// refusal is what a check says of: whether anything is closed or not, and by which restriction.
const (
	never   = ""
	always  = "the cluster's own"
	byKube  = "--restrict-custom-addons=kube-namespaces"
	byLevel = "--restrict-custom-addons=pod-security"
)

// AC40, AC41: Where it is restricted, an add-on of a Custom catalogue writes neither to Kubernetes'
// own namespaces nor labels of pod security. Red, in the order of the cases, when problemOf does
// not look at: an object's namespace; a Namespace's name; its labels; and when it refuses without
// the restriction. The last cases are red when it looks at more than that.
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
				err := checkObjects([]*unstructured.Unstructured{{Object: map[string]any{"kind": "List"}}, object}, restrictions)
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

// AC40: A restriction stops new revisions of Custom add-ons, and nothing that is applied already or
// under way. Red when allowed does not look at the catalogue's type or at hooks, or holds up what
// is applied already or under way.
func TestRestrictionHoldsForNewRevisionsOfCustomAddons(t *testing.T) {
	for _, test := range []struct {
		why     string
		change  func(*facts)
		refused bool
	}{
		{"Custom", func(*facts) {}, true},
		{"Core", func(f *facts) { f.choice.Core = true }, false},
		{"unchanged", func(f *facts) { f.Decision.Do = revision.Keep }, false},
		{"under way", func(f *facts) { f.Decision.Do = revision.CarryOn }, false},
		{"another target", func(f *facts) { f.installation.Spec.TargetNamespace = "shop" }, false},
		{"a hook", func(f *facts) {
			f.installation.Spec.TargetNamespace = "shop"
			f.Hooks = []hooks.Hook{{Object: []byte(`{"kind": "Job", "metadata": {"name": "a", "namespace": "kube-system"}}`)}}
		}, true},
	} {
		f := &facts{installation: &kubermaticv1.AddonInstallation{}}
		f.installation.Spec.TargetNamespace = "kube-system"
		test.change(f)
		reconciler := &Reconciler{Dependencies: Dependencies{Options: Options{Restrictions: catalogue.Restrictions{KubeNamespaces: true}}}}
		stalled, refused := reconciler.allowed(t.Context(), f).(loop.Stalled)
		if refused != test.refused || refused && (stalled.Reason != "NotAllowed" || stalled.Condition != "Rendered") {
			t.Errorf("%s: got %+v, want refused: %t", test.why, stalled, test.refused)
		}
	}
}
