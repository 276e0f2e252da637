package admission

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/test/charts"
	"github.com/trellis-addons/trellis/test/expect"
)

// pooled is a Cluster of Cluster API with two pools of workers, of which somebody holds the second.
func pooled() *unstructured.Unstructured {
	made := anyOf("cluster.x-k8s.io/v1beta2", "Cluster", "pooled")
	pool := func(name string, annotations map[string]any) any {
		return map[string]any{
			"class": "default", "name": name, "replicas": int64(1),
			"metadata": map[string]any{"labels": map[string]any{"pool": name}, "annotations": annotations},
		}
	}
	made.Object["spec"] = map[string]any{
		"clusterNetwork": map[string]any{"serviceDomain": "cluster.local"},
		"topology": map[string]any{
			"classRef": map[string]any{"name": "quick-start"}, "version": "v1.36.3",
			"workers": map[string]any{
				"machineDeployments": []any{
					pool("first", map[string]any{"note": "kept"}), pool("held", map[string]any{"topology.cluster.x-k8s.io/hold-upgrade-sequence": "by hand"}),
					map[string]any{"class": "default", "name": "bare"},
				},
				"machinePools": []any{pool("pool", map[string]any{"note": "kept"})},
			},
		},
	}
	return made
}

// patching sends a JSON patch to an object that is there.
func patching(object client.Object, patch string) func(context.Context, client.Client) error {
	return func(ctx context.Context, thief client.Client) error {
		return thief.Patch(ctx, object.DeepCopyObject().(client.Object), client.RawPatch("application/json-patch+json", []byte(patch)), client.DryRunAll)
	}
}

// attemptsAtPools are those at a Cluster of Cluster API: all but what holds its upgrades has to stay as it is.
func attemptsAtPools() []attempt {
	const hold = "topology.cluster.x-k8s.io~1hold-upgrade-sequence"
	const deployments = "/spec/topology/workers/machineDeployments/"
	holds := seedOnly("it holds upgrades until add-ons are ready for them")
	at := func(what, patch string, inherent map[string]string) attempt {
		return attempt{what: what, do: patching(pooled(), patch), inherent: inherent}
	}
	add := func(path, value string) string { return `[{"op":"add","path":"` + path + `","value":` + value + `}]` }
	remove := func(path string) string { return `[{"op":"remove","path":"` + path + `"}]` }
	return []attempt{
		at("hold the upgrade of a Cluster of Cluster API", add("/metadata/annotations", `{"before-upgrade.hook.cluster.cluster.x-k8s.io/trellis":"trellis"}`), holds),
		at("hold the upgrade of its workers", add(deployments+"0/metadata/annotations/"+hold, `"trellis"`), holds),
		at("hold the upgrade of a worker pool that has no metadata", add(deployments+"2/metadata", `{"annotations":{"topology.cluster.x-k8s.io/hold-upgrade-sequence":"trellis"}}`), holds),
		at("hold the upgrade of its machine pools", add("/spec/topology/workers/machinePools/0/metadata/annotations/"+hold, `"trellis"`), holds),
		at("hold the upgrade of its workers in the name of another controller", add(deployments+"0/metadata/annotations/"+hold, `"by hand"`), nil),
		at("remove another controller's hold on the upgrade of its workers", remove(deployments+"1/metadata/annotations/"+hold), nil),
		at("change another annotation of its workers", add(deployments+"0/metadata/annotations/note", `"x"`), nil),
		at("remove another annotation of its workers", remove(deployments+"0/metadata/annotations/note"), nil),
		at("change a label of its workers", add(deployments+"0/metadata/labels/pool", `"x"`), nil),
		at("change the number of its workers", add(deployments+"0/replicas", `9`), nil),
		at("remove the number of its workers", remove(deployments+"0/replicas"), nil),
		at("add workers to it", add(deployments+"-", `{"class":"default","name":"thief"}`), nil),
		at("remove workers from it", remove(deployments+"2"), nil),
		at("remove all workers from it", remove("/spec/topology/workers"), nil),
		at("change the order of its workers", `[{"op":"move","from":"`+deployments+`0","path":"`+deployments+`1"}]`, nil),
		at("upgrade it", add("/spec/topology/version", `"v1.37.2"`), nil),
		at("give it variables", add("/spec/topology/variables", `[{"name":"a","value":1}]`), nil),
		at("change its networks", add("/spec/clusterNetwork/serviceDomain", `"thief.local"`), nil),
		at("pause it", add("/spec/paused", `true`), nil),
		at("change an annotation of Cluster API on it", add("/metadata/annotations", `{"cluster.x-k8s.io/paused":""}`), nil),
		{what: "delete it", do: deleting(pooled())},
	}
}

// manyPools is a Cluster of Cluster API with so many pools of each kind.
func manyPools(t *testing.T, count int) *unstructured.Unstructured {
	t.Helper()
	pools := make([]any, count)
	for i := range pools {
		pools[i] = map[string]any{
			"class": "default", "name": fmt.Sprintf("pool-%d", i), "replicas": int64(1),
			"metadata": map[string]any{"labels": map[string]any{"pool": fmt.Sprint(i)}, "annotations": map[string]any{"note": "kept"}},
		}
	}
	made := pooled()
	made.SetNamespace("many-pools")
	for _, list := range []string{"machineDeployments", "machinePools"} {
		expect.NoError(t, unstructured.SetNestedSlice(made.Object, pools, "spec", "topology", "workers", list))
	}
	return made
}

// managerUnder is a client of the seed's manager of a namespace that is made for it, which may do all but what one policy refuses.
func (w *world) managerUnder(t *testing.T, policy, namespace string) client.Client {
	t.Helper()
	_, rendered, err := charts.Render(seedManager, namespace, map[string]any{"clusterAPI": map[string]any{"kinds": []any{"cluster-api"}}})
	expect.NoError(t, err)
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}}
	for _, object := range rendered {
		if strings.HasPrefix(object.GetKind(), "ValidatingAdmissionPolicy") && strings.HasSuffix(object.GetName(), "."+policy) {
			objects = append(objects, object)
		}
	}
	for _, object := range objects {
		expect.Create(t, w.admin, object)
	}
	config := rest.CopyConfig(w.config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":" + seedManager, Groups: []string{"system:masters"},
	}
	made, err := client.New(config, client.Options{Scheme: w.admin.Scheme(), Mapper: w.admin.RESTMapper()})
	expect.NoError(t, err)
	return made
}

// Red when the policy costs more than an API server grants it where there are as many pools as Cluster API takes: then nothing that the
// manager writes gets through, and an upgrade that is held is not let go. What it may not change is refused there for what it is.
func TestClustersOfManyPoolsAreHeld(t *testing.T) {
	const most, pools = 2000, "/spec/topology/workers/"
	add := func(path, value string) string { return `{"op":"add","path":"` + path + `","value":` + value + `}` }
	each := func(path, value string) string {
		return add(pools+"machineDeployments/"+path, value) + "," + add(pools+"machinePools/"+path, value)
	}
	holds := each("0/metadata/annotations/topology.cluster.x-k8s.io~1hold-upgrade-sequence", `"trellis"`) + "," +
		add("/metadata/annotations", `{"before-upgrade.hook.cluster.cluster.x-k8s.io/trellis":"trellis"}`)
	scales := each(fmt.Sprintf("%d/replicas", most-1), `9`)
	everywhere(t, func(t *testing.T, w *world) {
		cluster := manyPools(t, most)
		manager := w.managerUnder(t, "manager-cluster-api", cluster.GetNamespace())
		expect.Create(t, w.admin, cluster)
		expect.Eventually(t, expect.Patience, func() error { // once the policy is followed
			err := patching(cluster, `[`+scales+`]`)(t.Context(), manager)
			if outcome(err) != byPolicy {
				return fmt.Errorf("with %d pools of a kind, more workers of the last are %s", most, outcome(err))
			}
			if strings.Contains(err.Error(), "resulted in error") {
				t.Fatalf("with %d pools of a kind, the policy fails: %v", most, err)
			}
			return nil
		})
		if err := patching(cluster, `[`+holds+`]`)(t.Context(), manager); err != nil {
			t.Errorf("with %d pools of a kind, they can't be held: %v", most, err)
		}
	})
}
