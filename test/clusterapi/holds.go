package clusterapi

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	capiv1 "github.com/trellis-addons/trellis/apis/clusterapi/v1"
)

// Holds are what Trellis holds upgrades of a Cluster with; those of others are none of them.
type Holds struct {
	// Hook says that the control plane is held.
	Hook bool
	// Workers says that the first pool of each kind is; a kind of which there is none is not in the way. Without any pool it is false.
	Workers bool
}

// HoldsOf reads them off a Cluster.
func HoldsOf(cluster *unstructured.Unstructured) Holds {
	_, isHooked := cluster.GetAnnotations()[capiv1.AnnotationBeforeUpgrade]
	first, held := 0, 0
	for _, kind := range []string{"machineDeployments", "machinePools"} {
		pools, _, _ := unstructured.NestedSlice(cluster.Object, "spec", "topology", "workers", kind)
		if len(pools) == 0 {
			continue
		}
		first++
		pool, _ := pools[0].(map[string]any)
		if textAt(pool, "metadata", "annotations", capiv1.AnnotationHoldSequence) == "trellis" {
			held++
		}
	}
	return Holds{Hook: isHooked, Workers: first > 0 && held == first}
}

// ControlPlane are the versions, with their v, that a field of a Cluster's status.controlPlane lists.
func ControlPlane(cluster *unstructured.Unstructured, field string) (versions []string) {
	items, _, _ := unstructured.NestedSlice(cluster.Object, "status", "controlPlane", field)
	for _, item := range items {
		fields, _ := item.(map[string]any)
		version, _, _ := unstructured.NestedString(fields, "version")
		versions = append(versions, version)
	}
	return versions
}
