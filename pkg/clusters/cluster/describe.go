package cluster

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	capiv1 "github.com/trellis-addons/trellis/apis/clusterapi/v1"
	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
)

var kindCluster = kkpv1.GroupVersion.WithKind("Cluster")

// Describe describes a KKP Cluster for packages that know no kind of cluster.
func Describe(cluster *kkpv1.Cluster) target.Description {
	return target.Description{
		Ref: target.Ref{
			Kind: kindCluster.GroupKind(), Namespace: cluster.Status.NamespaceName, Name: cluster.Name, UID: cluster.UID,
		},
		KubernetesVersion: cluster.Status.Versions.ControlPlane,
		APIServerUp:       cluster.Status.ExtendedHealth.APIServer == kkpv1.HealthUp,
		Labels:            cluster.Labels, Annotations: cluster.Annotations,
		Paused: cluster.Spec.Pause, Deleted: !cluster.DeletionTimestamp.IsZero(), DeletedAt: deletedAt(cluster),
		Owner: metav1.OwnerReference{
			APIVersion: kindCluster.GroupVersion().String(), Kind: kindCluster.Kind, Name: cluster.Name, UID: cluster.UID,
		},
		Object: cluster,
	}
}

// deletedAt is the time since which an object is being deleted; zero: it is not.
func deletedAt(object metav1.Object) time.Time {
	if at := object.GetDeletionTimestamp(); at != nil {
		return at.Time
	}
	return time.Time{}
}

// Labels of a cluster for selectors: its own labels, overridden by its facts. An unknown fact is absent, even if the
// cluster has a label of its name: a user's label never counts as a fact.
func Labels(cluster target.Description, seed string) labels.Set {
	result := make(labels.Set, len(cluster.Labels)+len(isFact))
	for key, value := range cluster.Labels {
		if !isFact[key] {
			result[key] = value
		}
	}
	know := func(fact, value string) {
		if value != "" {
			result[fact] = value
		}
	}
	know(v1.FactSeed, seed)
	know(v1.FactNamespace, cluster.Namespace)
	know(v1.FactName, cluster.Name)
	if cluster.Kind.Group == kkpv1.GroupVersion.Group {
		know(v1.FactKind, cluster.Kind.Kind)
	} else {
		know(v1.FactKind, cluster.Kind.String())
	}
	switch found := cluster.Object.(type) {
	case *kkpv1.Cluster:
		know(v1.FactDatacenter, found.Spec.Cloud.Datacenter)
		know(v1.FactProvider, found.Spec.Cloud.ProviderName)
	case *capiv1.Cluster:
		know(v1.FactProvider, templatedata.ProviderOf(found))
	}
	return result
}

var isFact = map[string]bool{
	v1.FactSeed: true, v1.FactDatacenter: true, v1.FactProvider: true, v1.FactNamespace: true, v1.FactName: true, v1.FactKind: true,
}

func kkpCluster(cluster target.Description) (*kkpv1.Cluster, error) {
	if kkp, isKKP := cluster.Object.(*kkpv1.Cluster); isKKP {
		return kkp, nil
	}
	return nil, fmt.Errorf("cluster %q is not a Cluster of KKP: templates support no other kind", cluster.Name)
}

// BelongsTo reports whether a Cluster is for controllers with this --worker-name, usually empty.
func BelongsTo(cluster target.Description, workerName string) bool {
	return WorkerName(cluster) == workerName
}

// WorkerName is the --worker-name of the controllers that are responsible for a Cluster.
func WorkerName(cluster target.Description) string { return cluster.Labels[kkpv1.LabelWorkerName] }

// AddToScheme registers the kinds of KKP and of Cluster API.
func AddToScheme(scheme *runtime.Scheme) error {
	return errors.Join(kkpv1.AddToScheme(scheme), capiv1.AddToScheme(scheme))
}
