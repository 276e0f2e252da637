package cluster

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"

	capiv1 "github.com/trellis-addons/trellis/apis/clusterapi/v1"
	"github.com/trellis-addons/trellis/pkg/target"
)

// clusterIn is the Cluster in an object of any version, which knows its version; nil: none.
func clusterIn(object any) *capiv1.Cluster {
	if tombstone, missed := object.(toolscache.DeletedFinalStateUnknown); missed {
		object = tombstone.Obj
	}
	switch one := object.(type) {
	case *capiv1.Cluster:
		return ofVersion(one, capiv1.V1Beta2)
	case *capiv1.ClusterV1Beta1:
		return ofVersion(&one.Cluster, capiv1.V1Beta1)
	}
	return nil
}

// ofVersion is a Cluster that says of which version it is. It shares all else with the one of the
// cache, which says nothing.
func ofVersion(found *capiv1.Cluster, version schema.GroupVersion) *capiv1.Cluster {
	told := *found
	told.SetGroupVersionKind(version.WithKind(capiv1.Kind))
	return &told
}

// describeCAPI describes a Cluster of Cluster API, of clusterIn.
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

// providerNames are KKP's words for kinds of infrastructure (pkg/provider/types.go and
// sdk/apis/kubermatic/v1/cluster.go of KKP).
var providerNames = map[string]string{
	"Anexia": "anexia", "AWS": "aws", "Azure": "azure", "DO": "digitalocean", "GCP": "gcp", "Hetzner": "hetzner", "Kubevirt": "kubevirt",
	"Nutanix": "nutanix", "OpenStack": "openstack", "Tinkerbell": "baremetal", "VCD": "vmwareclouddirector", "VSphere": "vsphere",
}

// providerOf is the provider of a Cluster of Cluster API: the kind of its infrastructure without
// "Cluster", in KKP's word where it has one.
func providerOf(found *capiv1.Cluster) string {
	kind := strings.TrimSuffix(found.Spec.InfrastructureRef.Kind, capiv1.Kind)
	if name, ok := providerNames[kind]; ok {
		return name
	}
	return kind
}
