package addoninstallation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/test/expect"
)

// network has the objects of another tool: settings have a key that the add-on lacks, and env OLD is only in the
// add-on's first version.
const network = `apiVersion: v1
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

// networkChart is the add-on's content, without the given parts of the original objects.
func networkChart(without ...string) map[string]string {
	text := network
	for _, part := range without {
		text = strings.ReplaceAll(text, part, "")
	}
	return map[string]string{"Chart.yaml": "apiVersion: v2\nname: network\nversion: 1.0.0\n", "templates/all.yaml": text}
}

const (
	oldKey = `, old: "1"`
	oldEnv = `{name: OLD, value: "1"}, `
)

// offerNetwork offers a version equal to the original, one without the key and one also without the variable.
func (w *world) offerNetwork() {
	w.t.Helper()
	parts := map[string][]string{"0.9.0": nil, "1.0.0": {oldKey}, "1.1.0": {oldKey, oldEnv}}
	placed := map[string]string{}
	var versions []kubermaticv1.AddonVersion
	for _, version := range []string{"0.9.0", "1.0.0", "1.1.0"} {
		for name, text := range networkChart(parts[version]...) {
			placed[version+"/"+name] = text
		}
		made := w.version(offered{version: version})
		made.Values, made.Template.Method, made.Source.Git.Path = nil, kubermaticv1.MethodHelm, version
		made.Source.Git.Remote = kubermaticv1.GitRemote(w.sources.GitURL + "/network.git")
		versions = append(versions, made)
	}
	if _, err := w.sources.Commit("network", placed); err != nil {
		w.t.Fatal(err)
	}
	w.offer("network", kubermaticv1.CatalogueCustom, versions...)
}

// networkObjects are the three in a namespace.
type networkObjects struct {
	settings   corev1.ConfigMap
	policy     networkingv1.NetworkPolicy
	deployment appsv1.Deployment
}

func (w *world) networkIn(namespace string) *networkObjects {
	w.t.Helper()
	found := &networkObjects{}
	found.settings.Name, found.policy.Name, found.deployment.Name = "settings", "closed", "web"
	for _, object := range found.all() {
		expect.Get(w.t, w.seed, client.ObjectKey{Namespace: namespace, Name: object.GetName()}, object)
	}
	return found
}

func (n *networkObjects) all() []client.Object {
	return []client.Object{&n.settings, &n.policy, &n.deployment}
}

// identities are UID and generation of each object.
func (n *networkObjects) identities() (all []string) {
	for _, object := range n.all() {
		all = append(all, fmt.Sprintf("%s: %s, generation %d", object.GetName(), object.GetUID(), object.GetGeneration()))
	}
	return all
}

// writers are the field managers of each object, except for writers of a status.
func (n *networkObjects) writers() map[string][]string {
	found := map[string][]string{}
	for _, object := range n.all() {
		for _, entry := range object.GetManagedFields() {
			if entry.Subresource == "" {
				found[object.GetName()] = append(found[object.GetName()], entry.Manager)
			}
		}
	}
	return found
}

// previousTool is a way in which objects came into the user cluster.
type previousTool struct {
	why       string
	neighbour bool
	bring     func(w *world, namespace string)
}

var previousTools = []previousTool{
	{
		why: "a release by Helm's library inside of another program",
		bring: func(w *world, namespace string) {
			w.programAs("manager", "helm", "", "install", "network", folder(w.t, networkChart()), "-n", namespace, "--create-namespace")
		},
	},
	{
		why: "installations of another Cluster over the same user cluster", neighbour: true,
		bring: func(w *world, namespace string) {
			moved := w.neighbours[0]
			object := w.installIn(moved, "network", "network")
			w.edit(object, func(object *kubermaticv1.AddonInstallation) { object.Spec.AddonRef.Version = "0.9.0" })
			w.expectApplied(object, "0.9.0")
			w.edit(object, func(object *kubermaticv1.AddonInstallation) { object.Spec.Paused = true })
			w.expectReady(object, kubermaticv1.ReasonPaused)
		},
	},
}

// expectApplied waits until that version is in the user cluster. No controller there makes Deployments healthy.
func (w *world) expectApplied(object *kubermaticv1.AddonInstallation, version string) {
	w.t.Helper()
	expect.Object(w.t, w.seed, object, func(object *kubermaticv1.AddonInstallation) error {
		if object.Status.Version != version {
			return fmt.Errorf("version %q with %+v, want %q", object.Status.Version, object.Status.Conditions, version)
		}
		return expect.Condition(object, kubermaticv1.ConditionApplied, "True", kubermaticv1.ReasonApplied)
	})
}

// Objects of another tool are adopted without a change: UIDs and generations stay, and the fields then belong to the
// installation alone. Fields that the add-on lacks are removed, drift is repaired, and fields that a later version
// lacks are removed too. It fails if Helm's marks don't make their writer a tool (helmMark out of toolMarks), and if
// the fields of a deleted installation stay its own. test/endtoend adopts objects of ClusterResourceSets, since Cluster
// API's own manager runs there.
func TestWhatAnotherToolAppliedIsAdoptedUnchanged(t *testing.T) {
	t.Parallel()
	for _, test := range previousTools {
		t.Run(test.why, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.renderers = bothMethods()
			if test.neighbour {
				w.addNeighbour()
			}
			w.start()
			w.offerNetwork()
			namespace := w.unique("network")
			test.bring(w, namespace)
			before := w.networkIn(namespace)

			object := w.install("network", "1.0.0")
			expect.HasCondition(t, w.seed, object, expect.Is(kubermaticv1.ConditionReady, "False", kubermaticv1.ReasonReleaseNameTaken))
			if diff := cmp.Diff(before.identities(), w.networkIn(namespace).identities()); diff != "" {
				t.Fatalf("something was written without adopt (-before +after):\n%s", diff)
			}
			w.edit(object, func(object *kubermaticv1.AddonInstallation) {
				object.Annotations = map[string]string{kubermaticv1.AnnotationAdopt: "true"}
			})
			w.expectApplied(object, "1.0.0")
			after := w.networkIn(namespace)
			if diff := cmp.Diff(before.identities(), after.identities()); diff != "" {
				t.Errorf("UIDs and generations (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(map[string]string{"version": "one"}, after.settings.Data); diff != "" {
				t.Errorf("data (-want +got):\n%s", diff)
			}
			owner := ownership.Owner{ClusterUID: w.cluster.UID, Installation: object.Name}.FieldManager()
			want := map[string][]string{"settings": {owner}, "closed": {owner}, "web": {owner}}
			if diff := cmp.Diff(want, after.writers()); diff != "" {
				t.Errorf("who has fields (-want +got):\n%s", diff)
			}
			w.expectOwned(object, after)
		})
	}
}

// expectOwned checks that drift in adopted objects is repaired, and that the next version removes the fields that it
// lacks.
func (w *world) expectOwned(object *kubermaticv1.AddonInstallation, have *networkObjects) {
	w.t.Helper()
	drifted := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"policyTypes":["Ingress","Egress"]}}`))
	expect.Patch(w.t, w.seed, &have.policy, drifted)
	w.annotate(object, kubermaticv1.AnnotationReconcileAt, "now")
	expect.Eventually(w.t, expect.Patience, func() error {
		if now := w.networkIn(object.Spec.TargetNamespace).policy.Spec.PolicyTypes; len(now) != 1 {
			return fmt.Errorf("drift stays: %v", now)
		}
		return nil
	})
	w.want(object, "1.1.0")
	w.expectApplied(object, "1.1.0")
	variables := w.networkIn(object.Spec.TargetNamespace).deployment.Spec.Template.Spec.Containers[0].Env
	if slices.ContainsFunc(variables, func(one corev1.EnvVar) bool { return one.Name == "OLD" }) || len(variables) != 1 {
		w.t.Errorf("what the next version lacks stays: %v", variables)
	}
}
