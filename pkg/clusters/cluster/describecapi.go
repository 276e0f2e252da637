package cluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	capiv1 "github.com/trellis-addons/trellis/apis/clusterapi/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// clusterIn is the Cluster in an object of any version. It has that version set; nil: the object is no Cluster.
func clusterIn(object client.Object) *capiv1.Cluster {
	switch one := object.(type) {
	case *capiv1.Cluster:
		return ofVersion(one, capiv1.V1Beta2)
	case *capiv1.ClusterV1Beta1:
		return ofVersion(&one.Cluster, capiv1.V1Beta1)
	}
	return nil
}

// ofVersion is a Cluster with its version set. It shares all other data with the one of the cache, which has none.
func ofVersion(found *capiv1.Cluster, version schema.GroupVersion) *capiv1.Cluster {
	described := *found
	described.SetGroupVersionKind(version.WithKind(capiv1.Kind))
	return &described
}

// describeCAPI describes a Cluster of Cluster API, as clusterIn returns it.
func describeCAPI(found *capiv1.Cluster, version known) target.Description {
	_, isPaused := found.Annotations[capiv1.AnnotationPaused]
	return target.Description{
		Ref: target.Ref{
			Kind: target.KindClusterAPI, Namespace: found.Namespace, Name: found.Name, UID: found.UID,
		},
		KubernetesVersion: version.version, NoVersion: version.problem,
		APIServerUp: isInitialised(found),
		Labels:      found.Labels, Annotations: found.Annotations,
		Paused: found.Spec.Paused || isPaused, Deleted: !found.DeletionTimestamp.IsZero(), DeletedAt: deletedAt(found),
		Owner: metav1.OwnerReference{
			APIVersion: found.APIVersion, Kind: found.Kind, Name: found.Name, UID: found.UID,
		},
		Upgrade: upgradeOf(found, version),
		Object:  found,
	}
}

func isInitialised(found *capiv1.Cluster) bool {
	if found.Status.Initialization.ControlPlaneInitialized {
		return true
	}
	for _, one := range found.Status.Conditions {
		if one.Type == capiv1.ConditionControlPlaneInitialized {
			return one.Status == metav1.ConditionTrue
		}
	}
	return false
}
