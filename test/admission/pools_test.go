package admission

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
		at("hold its workers", add(deployments+"0/metadata/annotations/"+hold, `"trellis"`), holds),
		at("hold workers of a pool that has no metadata", add(deployments+"2/metadata", `{"annotations":{"topology.cluster.x-k8s.io/hold-upgrade-sequence":"trellis"}}`), holds),
		at("hold machine pools", add("/spec/topology/workers/machinePools/0/metadata/annotations/"+hold, `"trellis"`), holds),
		at("hold its workers in somebody else's name", add(deployments+"0/metadata/annotations/"+hold, `"by hand"`), nil),
		at("take off what somebody else holds its workers by", remove(deployments+"1/metadata/annotations/"+hold), nil),
		at("change another annotation of its workers", add(deployments+"0/metadata/annotations/note", `"x"`), nil),
		at("take another annotation of its workers off", remove(deployments+"0/metadata/annotations/note"), nil),
		at("change a label of its workers", add(deployments+"0/metadata/labels/pool", `"x"`), nil),
		at("change how many workers it has", add(deployments+"0/replicas", `9`), nil),
		at("take away how many workers it has", remove(deployments+"0/replicas"), nil),
		at("add workers to it", add(deployments+"-", `{"class":"default","name":"thief"}`), nil),
		at("take workers away from it", remove(deployments+"2"), nil),
		at("take all workers away from it", remove("/spec/topology/workers"), nil),
		at("change the order of its workers", `[{"op":"move","from":"`+deployments+`0","path":"`+deployments+`1"}]`, nil),
		at("upgrade it", add("/spec/topology/version", `"v1.37.1"`), nil),
		at("give it variables", add("/spec/topology/variables", `[{"name":"a","value":1}]`), nil),
		at("change its networks", add("/spec/clusterNetwork/serviceDomain", `"thief.local"`), nil),
		at("pause it", add("/spec/paused", `true`), nil),
		at("change an annotation of Cluster API's on it", add("/metadata/annotations", `{"cluster.x-k8s.io/paused":""}`), nil),
		{what: "delete it", do: deleting(pooled())},
	}
}
