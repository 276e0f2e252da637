package addoninstallation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
	kit "github.com/trellis-addons/trellis/test/world"
)

// gate is an add-on whose cluster-scoped objects differ between any two installations with other values, as in charts
// that label everything with the name of their release: a right, a webhook and an APIService. None of them affects the
// user cluster.
func (w *world) gate() string {
	return fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s, labels: {instance: "{{ .Variables.instance }}"}}
rules: []
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s, labels: {instance: "{{ .Variables.instance }}"}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s}
subjects: []
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: %[1]s, labels: {instance: "{{ .Variables.instance }}"}}
webhooks:
- name: check.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  clientConfig: {service: {namespace: "{{ .Variables.instance }}", name: check}}
  rules: [{apiGroups: [nowhere.example.com], apiVersions: [v1], operations: [CREATE], resources: [things]}]
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.%[1]s, labels: {instance: "{{ .Variables.instance }}"}}
spec: {group: %[1]s, version: v1, groupPriorityMinimum: 1000, versionPriority: 15}
`, w.group())
}

// gates are the cluster-scoped objects of add-on gate.
func (w *world) gates() []client.Object {
	service := &unstructured.Unstructured{}
	service.SetAPIVersion("apiregistration.k8s.io/v1")
	service.SetKind("APIService")
	service.SetName("v1." + w.group())
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: w.group()}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: w.group()}},
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: w.group()}}, service,
	}
}

// gateOf creates an installation of it with its own content.
func (w *world) gateOf(name string) *kubermaticv1.AddonInstallation {
	return w.instance("gate", name, "1.0.0", fmt.Sprintf(`{"instance": %q}`, name))
}

// uids are the UIDs of some objects; a missing object fails the test.
func (w *world) uids(objects []client.Object) (found []types.UID) {
	w.t.Helper()
	for _, object := range objects {
		expect.Read(w.t, w.seed, object)
		found = append(found, object.GetUID())
	}
	return found
}

// expectGates waits until all of them belong to an installation, with its content. Rights keep their previous UIDs; a
// webhook and an APIService do not pass to a refused installation.
func (w *world) expectGates(of *kubermaticv1.AddonInstallation, before []types.UID, among ...*kubermaticv1.AddonInstallation) {
	w.t.Helper()
	for at, object := range w.gates() {
		w.expectOwner(of.Name, object, among...)
		if content := object.GetLabels()["instance"]; content != of.Name || at < 2 && object.GetUID() != before[at] {
			w.t.Errorf("%T has the content of %q, want %q; UID %s became %s", object, content, of.Name, before[at], object.GetUID())
		}
	}
}

// TestNothingOutlivesAnAddonInAnyOrder fails if a refused sibling counts as one that has the object, and never adopts
// it: then both are gone, and webhooks, APIServices and rights stay. Of installations whose contents differ each adopts
// the objects of the previous one, in any order of their removal, also all at once.
func TestNothingOutlivesAnAddonInAnyOrder(t *testing.T) {
	t.Parallel()
	eachMethod(t, func(t *testing.T, w *world, method kubermaticv1.Method) {
		content := w.gate()
		if method == kubermaticv1.MethodHelm { // as in charts
			content = strings.ReplaceAll(content, ".Variables.instance", ".Release.Name")
		}
		w.concurrency = 4
		w.start()
		w.offer("gate", kubermaticv1.CatalogueCustom, w.addonsBy(method, map[string]string{"gate": content})("1.0.0", "gate"))
		for round, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
			w.removeGatesInOrder(round, order)
		}
	})
}

// removeGatesInOrder creates three installations and removes them, in every second round all at once.
func (w *world) removeGatesInOrder(round int, order []int) {
	w.t.Helper()
	var all []*kubermaticv1.AddonInstallation
	for _, name := range []string{"a", "b", "c"} {
		made := w.gateOf(fmt.Sprintf("%s%d", name, round))
		all = append(all, made)
		if name == "a" {
			w.expectReady(made, kubermaticv1.ReasonReady)
		}
	}
	w.expectReady(all[1], kubermaticv1.ReasonObjectExists, `shared with installation "`+all[0].Name+`"`, "adopts the object")
	w.expectReady(all[2], kubermaticv1.ReasonObjectExists)
	before, gone := w.uids(w.gates()), map[int]bool{}
	for _, next := range order {
		w.deleteAll(all[next])
		gone[next] = true
		if round%2 == 1 { // all at once
			continue
		}
		expect.Gone(w.t, w.seed, all[next])
		if len(gone) == 2 {
			last := all[order[2]]
			w.expectReady(last, kubermaticv1.ReasonReady)
			w.expectGates(last, before, all...)
		}
	}
	for _, one := range all {
		expect.Gone(w.t, w.seed, one)
	}
	for _, object := range w.gates() {
		expect.Gone(w.t, w.seed, object)
	}
}

// TestWhatASiblingHasNotComeToPassesOn fails if an object that a sibling plans and has not written yet stays for it,
// and then has no owner (a record that names no siblings).
func TestWhatASiblingHasNotComeToPassesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.clock, w.driftInterval = kit.RunningClock(t), 3*time.Second
	w.start()
	w.offer("gate", kubermaticv1.CatalogueCustom, w.addons(map[string]string{
		"gate": w.gate() + "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: own}}\n",
	})("1.0.0", "gate"))
	for _, isRemovedFirst := range []bool{false, true} {
		first := w.gateOf("first")
		w.expectReady(first, kubermaticv1.ReasonReady)
		before := w.uids(w.gates())
		second := given.Installation(w.namespace, "second", "gate", w.unique(fmt.Sprintf("later-%t", isRemovedFirst)), given.In("1.0.0"))
		second.Spec.Values = first.Spec.Values
		second.Spec.Values.Raw = []byte(`{"instance": "second"}`)
		w.create(second)
		w.expectReady(second, kubermaticv1.ReasonNamespaceMissing)
		w.deleteAll(first)
		expect.Gone(t, w.seed, first)
		if !isRemovedFirst {
			w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: second.Spec.TargetNamespace}})
			w.expectReady(second, kubermaticv1.ReasonReady)
			w.expectGates(second, before, first, second)
		}
		w.deleteAll(second)
		expect.Gone(t, w.seed, second)
		for _, object := range w.gates() {
			expect.Gone(t, w.seed, object)
		}
	}
}

// As gatekeeper does with all Namespaces. It fails if the webhook of a removed installation stays for a refused
// sibling: its service does not answer, so the sibling's Namespace can't be created and it never adopts the webhook.
func TestAWebhookWithoutItsServerDoesNotStay(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	w.clock, w.driftInterval = kit.RunningClock(t), 3*time.Second
	w.start()
	content := strings.NewReplacer(
		".Variables.instance", ".Release.Name", "failurePolicy: Ignore", "failurePolicy: Fail",
		"{apiGroups: [nowhere.example.com], apiVersions: [v1], operations: [CREATE], resources: [things]}",
		`{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [namespaces]}`,
		"  clientConfig:", fmt.Sprintf("  objectSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}\n  clientConfig:", w.unique("second")),
	).Replace(w.gate())
	w.offer("gate", kubermaticv1.CatalogueCustom, w.addonsBy(kubermaticv1.MethodHelm, map[string]string{"gate": content})("1.0.0", "gate"))
	first := w.gateOf("first")
	w.expectReady(first, kubermaticv1.ReasonReady)
	second := w.gateOf("second")
	w.expectReady(second, kubermaticv1.ReasonObjectExists)
	w.deleteAll(first)
	expect.Gone(t, w.seed, first)
	w.expectReady(second, kubermaticv1.ReasonReady)
	for _, object := range w.gates() {
		w.expectOwner("second", object, first, second)
	}
	w.deleteAll(second)
	expect.Gone(t, w.seed, second)
	for _, object := range w.gates() {
		expect.Gone(t, w.seed, object)
	}
}
