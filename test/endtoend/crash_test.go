package endtoend_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/sandbox"
)

// points at which a pass is ended as kill -9 does; controller addoninstallation names them.
var points = []string{"before-intent", "between-stages", "before-final-record"}

// crashFiles need two stages; names and the API group are the installation's own, so that each run starts from nothing.
var crashFiles = map[string]string{
	"10-resource.yaml": `apiVersion: {{ .Variables.name }}.crash.example/v1
kind: Probe
metadata: {name: probe}
spec: {value: one}
`,
	"20-crd.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: probes.{{ .Variables.name }}.crash.example}
spec:
  group: {{ .Variables.name }}.crash.example
  scope: Namespaced
  names: {kind: Probe, listKind: ProbeList, plural: probes, singular: probe}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {value: {type: string}}}
`,
	"30-settings.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {value: one}
`,
	"40-deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: worker}
spec:
  replicas: 1
  selector: {matchLabels: {app: worker}}
  template:
    metadata: {labels: {app: worker}}
    spec: {containers: [{name: worker, image: registry.example/worker:1}]}
`,
}

// testKilledAnywhere kills the seed's manager at each point of a first installation. It turns red when the intent is not
// recorded before the first write (the objects of the killed pass count as somebody else's: ObjectExists) and when a
// restarted rollout writes anew what is there (generations above 1).
func testKilledAnywhere(t *testing.T, box *sandbox.Sandbox) {
	commit(t, box, "crash", crashFiles)
	create(t, box.Client(sandbox.Master), catalogueOf("crash", gitVersion(box, "crash", "")))
	seed, user := box.Client(cluster.Seed), box.Client(cluster.Name)
	manager := box.Manager(cluster.Seed)
	want := settledState(t, seed, user, "clean")
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			manager.Stop()
			if err := manager.Start(t.Context(), "TRELLIS_FAULT_POINT="+point); err != nil {
				t.Fatal(err)
			}
			doomed := manager.Process()
			create(t, seed, crashInstallation(point))
			select {
			case <-doomed.Done():
			case <-time.After(5 * expect.Patience):
				t.Fatalf("the manager never came to fault point %q", point)
			}
			if diff := cmp.Diff(want, settledState(t, seed, user, point)); diff != "" {
				t.Errorf("state after the kill differs from a clean run (-clean +killed):\n%s", diff)
			}
			remove(t, seed, user, point)
		})
	}
}

// settledState installs the add-on where that is not done yet, waits until it is Ready, and tells what seed and user
// cluster have, with the installation's name taken out.
func settledState(t *testing.T, seed, user client.Client, name string) map[string]string {
	t.Helper()
	installation := crashInstallation(name)
	create(t, seed, installation)
	installation = ready(t, seed, installation)
	state := map[string]string{"objects": fmt.Sprint(installation.Status.Objects.Total)}
	for _, kind := range kindsOf(name) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := user.List(t.Context(), list, client.HasLabels{kubermaticv1.LabelInstallation}); err != nil {
			t.Fatal(err)
		}
		for _, item := range list.Items {
			if strings.Contains(item.GetName()+item.GetNamespace(), name) {
				state[anonymous(item.GetKind()+" "+item.GetNamespace()+"/"+item.GetName(), name)] = anonymous(essence(t, item), name)
			}
		}
	}
	state["release records"] = recordsOf(t, seed, name)
	return state
}

func crashInstallation(name string) *kubermaticv1.AddonInstallation {
	installation := newInstallation(name, "crash")
	installation.Spec.Values = &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"name":%q}`, name)}
	return installation
}

// essence is what must be equal in every run: the content, how often it was changed, and who wrote it.
func essence(t *testing.T, object unstructured.Unstructured) string {
	t.Helper()
	var writers []string
	for _, entry := range object.GetManagedFields() {
		if strings.HasPrefix(entry.Manager, "addon-installation/") {
			writers = append(writers, string(entry.Operation))
		}
	}
	slices.Sort(writers)
	content := map[string]any{
		"spec": object.Object["spec"], "data": object.Object["data"], "generation": object.GetGeneration(), "our writes": writers,
	}
	encoded, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

// recordsOf counts the release records of an installation on the seed.
func recordsOf(t *testing.T, seed client.Client, name string) string {
	t.Helper()
	owner := &kkpv1.Cluster{}
	if err := seed.Get(t.Context(), client.ObjectKey{Name: cluster.Name}, owner); err != nil {
		t.Fatal(err)
	}
	secrets := &corev1.SecretList{}
	labels := client.MatchingLabels{kubermaticv1.LabelInstallation: apply.Owner{ClusterUID: owner.UID, Installation: name}.ID()}
	if err := seed.List(t.Context(), secrets, client.InNamespace(cluster.Namespace()), labels); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(len(secrets.Items))
}

func remove(t *testing.T, seed, user client.Client, name string) {
	t.Helper()
	installation := &kubermaticv1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace(), Name: name}}
	if err := seed.Delete(t.Context(), installation); err != nil {
		t.Fatal(err)
	}
	expect.Gone(t, seed, installation)
	expect.Gone(t, user, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if left := recordsOf(t, seed, name); left != "0" {
		t.Errorf("%s release records are left", left)
	}
}

func anonymous(text, name string) string { return strings.ReplaceAll(text, name, "NAME") }
