package cluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	"github.com/trellis-addons/trellis/pkg/target"
)

// Describe is what those need of a KKP Cluster who know no kinds of clusters.
func Describe(cluster *kkpv1.Cluster) target.Description {
	kind := kkpv1.GroupVersion.WithKind("Cluster")
	return target.Description{
		Ref: target.Ref{
			Kind: kind.GroupKind(), Namespace: cluster.Status.NamespaceName, Name: cluster.Name, UID: cluster.UID,
		},
		KubernetesVersion: cluster.Status.Versions.ControlPlane,
		Labels:            cluster.Labels, Annotations: cluster.Annotations,
		Paused: cluster.Spec.Pause, Deleted: Deleted(cluster),
		Owner: metav1.OwnerReference{
			APIVersion: kkpv1.GroupVersion.String(), Kind: kind.Kind, Name: cluster.Name, UID: cluster.UID,
		},
	}
}
