package endtoend_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/sandbox"
)

// legacy is what a ClusterResourceSet brings: settings have a key that the add-on lacks, and env OLD is in its first version only.
const legacy = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {version: one, old: "1"}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: closed}
spec: {podSelector: {matchLabels: {app: web}}, policyTypes: [Ingress]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "registry.k8s.io/web:1", env: [{name: OLD, value: "1"}, {name: KEPT, value: "1"}]}]}
`

// lacking is legacy without these parts.
func lacking(parts ...string) string {
	text := legacy
	for _, part := range parts {
		text = strings.ReplaceAll(text, part, "")
	}
	return text
}

// resourceSet is a ClusterResourceSet of Cluster API, and the installation that comes after it.
type resourceSet struct {
	strategy string
	// first is what its ConfigMap has at first; later legacy.
	first string
	// namespace of the objects in the user cluster; the set, its ConfigMap and the installation have this name too.
	namespace string
	// managers are what annotation adopt-managers says.
	managers string
}

var resourceSets = []resourceSet{
	{strategy: "ApplyOnce", first: legacy, namespace: "brought-once", managers: "manager"},
	{
		strategy: "Reconcile", first: strings.ReplaceAll(legacy, `OLD, value: "1"`, `OLD, value: "0"`),
		namespace: "brought-again", managers: "other, manager",
	},
}

// selected is the label by which the sets find the Cluster.
const selected = "legacy"

func (s resourceSet) object() *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"strategy": s.strategy, "clusterSelector": map[string]any{"matchLabels": map[string]any{selected: "yes"}},
		"resources": []any{map[string]any{"kind": "ConfigMap", "name": s.namespace}},
	}}}
	made.SetAPIVersion("addons.cluster.x-k8s.io/v1beta2")
	made.SetKind("ClusterResourceSet")
	made.SetNamespace(sandbox.Team)
	made.SetName(s.namespace)
	return made
}

// content is the set's ConfigMap: a namespace, and manifests in it.
func (s resourceSet) content(manifests string) *corev1.ConfigMap {
	inside := strings.ReplaceAll(manifests, "metadata: {name: ", "metadata: {namespace: "+s.namespace+", name: ")
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: sandbox.Team, Name: s.namespace},
		Data: map[string]string{
			"a.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + s.namespace + "}\n", "b.yaml": inside,
		},
	}
}

// legacyObjects are the three in a namespace of the user cluster.
type legacyObjects struct {
	settings   corev1.ConfigMap
	policy     networkingv1.NetworkPolicy
	deployment appsv1.Deployment
}

func (l *legacyObjects) all() []client.Object {
	return []client.Object{&l.settings, &l.policy, &l.deployment}
}

// asked are the three without what the controller of Deployments writes, at any time: a status and, by the same call, an annotation.
func (l *legacyObjects) asked() []client.Object {
	deployment := l.deployment.DeepCopy()
	deployment.Status, deployment.ResourceVersion = appsv1.DeploymentStatus{}, ""
	deployment.ManagedFields = slices.DeleteFunc(deployment.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Subresource == "status"
	})
	delete(deployment.Annotations, "deployment.kubernetes.io/revision")
	if len(deployment.Annotations) == 0 {
		deployment.Annotations = nil
	}
	return []client.Object{&l.settings, &l.policy, deployment}
}

// identities are UID and generation of each.
func (l *legacyObjects) identities() (all []string) {
	for _, object := range l.all() {
		all = append(all, fmt.Sprintf("%s: %s, generation %d", object.GetName(), object.GetUID(), object.GetGeneration()))
	}
	return all
}

// writers are the field managers of each, without those that wrote a status.
func (l *legacyObjects) writers() map[string][]string {
	found := map[string][]string{}
	for _, object := range l.all() {
		for _, entry := range object.GetManagedFields() {
			if entry.Subresource == "" {
				found[object.GetName()] = append(found[object.GetName()], entry.Manager)
			}
		}
	}
	return found
}

// variable is the value that the Deployment's container has for OLD; "" where it has none.
func (l *legacyObjects) variable() string {
	for _, one := range l.deployment.Spec.Template.Spec.Containers[0].Env {
		if one.Name == "OLD" {
			return one.Value
		}
	}
	return ""
}

// brought reads what a set brought.
func (m *management) brought(t *testing.T, s resourceSet) (*legacyObjects, error) {
	t.Helper()
	found := &legacyObjects{}
	found.settings.Name, found.policy.Name, found.deployment.Name = "settings", "closed", "web"
	var all []error
	for _, object := range found.all() {
		key := client.ObjectKey{Namespace: s.namespace, Name: object.GetName()}
		all = append(all, m.box.Client(m.upgraded.Name).Get(t.Context(), key, object))
	}
	return found, errors.Join(all...)
}

// expectBrought waits until a set's objects are so.
func (m *management) expectBrought(t *testing.T, s resourceSet, holds func(*legacyObjects) error) *legacyObjects {
	t.Helper()
	var found *legacyObjects
	expect.Eventually(t, expect.Patience, func() (err error) {
		if found, err = m.brought(t, s); err != nil {
			return err
		}
		return holds(found)
	})
	return found
}

// k3-adopt: what a ClusterResourceSet brought, by Cluster API's own manager and in both of its strategies, is taken over as it stands
// once the set is deleted, which removes nothing: UIDs and generations stay, and from then on the fields are the installation's alone.
// What the add-on lacks goes, drift is put back, and what a later version lacks goes too. Red when something is written without adopt,
// when adopt-managers is not looked at, by its second name too, and when what adopted managers wrote stays theirs.
func (m *management) testResourceSets(t *testing.T) {
	m.offerLegacy(t)
	expect.Merge(t, m, sandbox.TeamObject(m.upgraded), fmt.Appendf(nil, `{"metadata":{"labels":{%q:"yes"}}}`, selected))
	for _, s := range resourceSets {
		expect.Ensure(t, m, s.content(s.first))
		expect.Ensure(t, m, s.object())
	}
	for _, s := range resourceSets {
		m.expectBrought(t, s, func(*legacyObjects) error { return nil })
		expect.Update(t, m, s.content(legacy))
		m.expectBrought(t, s, func(found *legacyObjects) error {
			if found.variable() != "1" {
				return fmt.Errorf("OLD is %q", found.variable())
			}
			return nil
		})
	}
	for _, s := range resourceSets {
		t.Run(s.strategy, func(t *testing.T) {
			before, err := m.brought(t, s)
			expect.NoError(t, err)
			expect.Ensure(t, m, s.installation(m.upgraded))
			m.expectRefused(t, s, before)
			object := m.takeOver(t, s, before)
			m.expectOwned(t, s, object, before)
			dropInstallation(t, m, object)
		})
	}
}

// offerLegacy offers a version without the key, and one without the variable too.
func (m *management) offerLegacy(t *testing.T) {
	t.Helper()
	const key, variable = `, old: "1"`, `{name: OLD, value: "1"}, `
	commit(t, m.box, "legacy", map[string]string{"1.0.0/all.yaml": lacking(key), "1.1.0/all.yaml": lacking(key, variable)})
	first := gitVersion(m.box, "legacy", "1.0.0")
	second := *first.DeepCopy()
	second.Version, second.Source.Git.Path = "1.1.0", "1.1.0"
	offered := catalogueOf("legacy", first)
	offered.Spec.Addons[0].Versions = append(offered.Spec.Addons[0].Versions, second)
	expect.Ensure(t, m.box.Client(sandbox.Master), offered)
}

func (s resourceSet) installation(cluster sandbox.UserCluster) *kubermaticv1.AddonInstallation {
	made := existing(cluster, s.namespace)
	made.Spec = kubermaticv1.AddonInstallationSpec{
		ClusterName: cluster.Name, AddonRef: kubermaticv1.AddonReference{Name: "legacy", Version: "1.0.0"}, TargetNamespace: s.namespace,
	}
	return made
}

// expectRefused waits until an installation names the writer, and holds that nothing was written since before it was there.
func (m *management) expectRefused(t *testing.T, s resourceSet, before *legacyObjects) {
	t.Helper()
	expect.Object(t, m, s.installation(m.upgraded), func(found *kubermaticv1.AddonInstallation) error {
		for _, one := range found.Status.Conditions {
			if one.Type == kubermaticv1.ConditionReady && !strings.Contains(one.Message, `field manager "manager"`) {
				return fmt.Errorf("it says %q", one.Message)
			}
		}
		return expect.Condition(found, kubermaticv1.ConditionReady, "False", kubermaticv1.ReasonObjectExists)
	})
	after, err := m.brought(t, s)
	expect.NoError(t, err)
	if diff := cmp.Diff(before.asked(), after.asked()); diff != "" {
		t.Fatalf("something was written without adopt (-before +after):\n%s", diff)
	}
}

// takeOver deletes the set and has its objects adopted.
func (m *management) takeOver(t *testing.T, s resourceSet, before *legacyObjects) *kubermaticv1.AddonInstallation {
	t.Helper()
	expect.Delete(t, m, s.object())
	expect.Gone(t, m, s.object())
	object := s.installation(m.upgraded)
	annotations := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true",%q:%q}}}`,
		kubermaticv1.AnnotationAdopt, kubermaticv1.AnnotationAdoptManagers, s.managers)
	expect.Merge(t, m, object, annotations)
	object = m.expectAt(t, object, "1.0.0")
	after, err := m.brought(t, s)
	expect.NoError(t, err)
	if diff := cmp.Diff(before.identities(), after.identities()); diff != "" {
		t.Errorf("UIDs and generations (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"version": "one"}, after.settings.Data); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
	owner := ownership.Owner{ClusterUID: object.Status.Cluster.UID, Installation: object.Name}.FieldManager()
	want := map[string][]string{"settings": {owner}, "closed": {owner}, "web": {owner}}
	if diff := cmp.Diff(want, after.writers()); diff != "" {
		t.Errorf("who has fields (-want +got):\n%s", diff)
	}
	return object
}

// expectAt waits until an installation is Ready with that version.
func (m *management) expectAt(t *testing.T, object *kubermaticv1.AddonInstallation, version string) *kubermaticv1.AddonInstallation {
	t.Helper()
	return expect.Object(t, m, object.DeepCopy(), func(found *kubermaticv1.AddonInstallation) error {
		if found.Status.Version != version {
			return fmt.Errorf("it is at %q: %v", found.Status.Version, found.Status.Conditions)
		}
		return expect.Condition(found, kubermaticv1.ConditionReady, "True", kubermaticv1.ReasonReady)
	})
}

// expectOwned holds that drift in what was taken over is put back, and that the next version takes off what it lacks.
func (m *management) expectOwned(t *testing.T, s resourceSet, object *kubermaticv1.AddonInstallation, before *legacyObjects) {
	t.Helper()
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "closed"}}
	drifted := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"policyTypes":["Ingress","Egress"]}}`))
	expect.Patch(t, m.box.Client(m.upgraded.Name), policy, drifted)
	expect.Annotate(t, m, object, kubermaticv1.AnnotationReconcileAt, "now")
	m.expectBrought(t, s, func(found *legacyObjects) error {
		if types := found.policy.Spec.PolicyTypes; !slices.Equal(types, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}) {
			return fmt.Errorf("drift stays: %v", types)
		}
		return nil
	})
	next := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"addonRef":{"version":"1.1.0"}}}`))
	expect.Patch(t, m, object, next)
	m.expectAt(t, object, "1.1.0")
	m.expectBrought(t, s, func(found *legacyObjects) error {
		if found.variable() != "" || found.deployment.UID != before.deployment.UID {
			return fmt.Errorf("what the next version lacks stays, or the Deployment is another: %+v", found.deployment.ObjectMeta)
		}
		return nil
	})
}
