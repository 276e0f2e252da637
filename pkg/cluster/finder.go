package cluster

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
)

// Finder finds the user clusters of a seed: all that depends on the kind of object that stands for one. KKPFinder is the
// one implementation so far. One for another kind gives what it knows in the shape of KKP's Cluster, which is what the
// other rooms read.
type Finder interface {
	// InNamespace is the one cluster that the namespace belongs to; else the error is an *UnknownError, or a failed read.
	InNamespace(ctx context.Context, namespace string) (*kkpv1.Cluster, error)
	// List gives all clusters; they are shared and must not be changed.
	List(ctx context.Context) ([]kkpv1.Cluster, error)
	// Gone says whether a cluster that was seen before does not exist any more. The first look is kept and false is
	// returned; ask again after GoneInterval. An error is never a reason to let go of anything.
	Gone(ctx context.Context, identity Identity) (bool, error)
	// Annotate reads a cluster's annotations past caches, has them changed, and writes what differs, unless the object
	// changed in between: then the error is a conflict (apierrors.IsConflict). Errors of change are returned as they are,
	// and nothing is written. A cluster that is gone, or another one by now, is not found (apierrors.IsNotFound).
	Annotate(ctx context.Context, identity Identity, change func(annotations map[string]string) error) error
	// Watch tells a controller about changes of clusters, out of the manager's cache.
	Watch(informers cache.Cache, changed Handler, relevant ...predicate.TypedPredicate[*kkpv1.Cluster]) source.Source
}

// Handler says what to look at when a cluster changes.
type Handler = handler.TypedEventHandler[*kkpv1.Cluster, reconcile.Request]

// Identity tells a Cluster from another one of the same name. Without a UID it stands for any of that name.
type Identity struct {
	Name string
	UID  types.UID
}

// IdentityOf is a Cluster's identity.
func IdentityOf(cluster *kkpv1.Cluster) Identity {
	return Identity{Name: cluster.Name, UID: cluster.UID}
}

// UnknownError says that a namespace has no Cluster, or more than one. It is never a reason to remove anything.
type UnknownError struct {
	Namespace string
	// Clusters that claim the namespace; empty, or two and more.
	Clusters []string
}

// Error implements error.
func (e *UnknownError) Error() string {
	if len(e.Clusters) == 0 {
		return fmt.Sprintf("no Cluster has namespace %q", e.Namespace)
	}
	return fmt.Sprintf("several Clusters have namespace %q: %q", e.Namespace, e.Clusters)
}

// GoneInterval is how far apart the two looks of Gone are; come back after it.
const GoneInterval = 30 * time.Second

// Deleted says whether a Cluster is being deleted: everything of it is let go, without a call to the user cluster.
func Deleted(cluster *kkpv1.Cluster) bool {
	return !cluster.DeletionTimestamp.IsZero()
}

// BelongsTo says whether a Cluster is for the controllers with this --worker-name; both are empty as a rule.
func BelongsTo(cluster *kkpv1.Cluster, workerName string) bool {
	return cluster.Labels[kkpv1.LabelWorkerName] == workerName
}
