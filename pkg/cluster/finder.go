package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
)

// NamespaceNameField is the index of Clusters by the namespace they have on the seed.
const NamespaceNameField = "status.namespaceName"

// IndexNamespaceName registers the index that InNamespace reads; call it once, before the manager starts.
func IndexNamespaceName(ctx context.Context, indexer client.FieldIndexer) error {
	return indexer.IndexField(ctx, &kkpv1.Cluster{}, NamespaceNameField, func(object client.Object) []string {
		if name := object.(*kkpv1.Cluster).Status.NamespaceName; name != "" {
			return []string{name}
		}
		return nil
	})
}

// Identity tells a Cluster from another one of the same name.
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

// Finder finds the Cluster of a namespace.
type Finder struct {
	cached, uncached client.Reader
	clock            clock.PassiveClock

	mutex sync.Mutex
	// absent is when a Cluster was first found missing.
	absent map[Identity]time.Time
}

// NewFinder finds by a cached reader with the index of IndexNamespaceName, and asks the API server itself whether a
// Cluster is gone.
func NewFinder(cached, uncached client.Reader) *Finder {
	return &Finder{cached: cached, uncached: uncached, clock: clock.RealClock{}, absent: map[Identity]time.Time{}}
}

// InNamespace is the one Cluster whose status.namespaceName is the namespace; else the error is an UnknownError, or the
// reader's.
func (f *Finder) InNamespace(ctx context.Context, namespace string) (*kkpv1.Cluster, error) {
	var list kkpv1.ClusterList
	if err := f.cached.List(ctx, &list, client.MatchingFields{NamespaceNameField: namespace}); err != nil {
		return nil, fmt.Errorf("listing the Clusters of namespace %q: %w", namespace, err)
	}
	if len(list.Items) == 1 {
		return &list.Items[0], nil
	}
	unknown := &UnknownError{Namespace: namespace}
	for _, item := range list.Items {
		unknown.Clusters = append(unknown.Clusters, item.Name)
	}
	return nil, unknown
}

// Gone says whether a Cluster that was seen before does not exist any more: the API server answers 404, or another UID,
// twice, GoneInterval apart, while it serves the kind. The first look is kept and false is returned; ask again after
// GoneInterval. A 403, a missing CRD and a failed call are never gone; they forget the first look.
func (f *Finder) Gone(ctx context.Context, identity Identity) (bool, error) {
	absent, err := f.isAbsent(ctx, identity)
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if err != nil || !absent {
		delete(f.absent, identity)
		return false, err
	}
	now := f.clock.Now()
	first, seen := f.absent[identity]
	if !seen {
		f.absent[identity] = now
		return false, nil
	}
	return now.Sub(first) >= GoneInterval, nil
}

// isAbsent is one look. A 404 counts only when a list of the same kind is answered: without the CRD, every name is 404.
func (f *Finder) isAbsent(ctx context.Context, identity Identity) (bool, error) {
	var cluster kkpv1.Cluster
	err := f.uncached.Get(ctx, client.ObjectKey{Name: identity.Name}, &cluster)
	if err == nil {
		return cluster.UID != identity.UID, nil
	}
	if !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("getting Cluster %q: %w", identity.Name, err)
	}
	if err := f.uncached.List(ctx, &kkpv1.ClusterList{}, client.Limit(1)); err != nil {
		return false, fmt.Errorf("listing Clusters, while %q is missing: %w", identity.Name, err)
	}
	return true, nil
}

// Deleted says whether a Cluster is being deleted: everything of it is let go, without a call to the user cluster.
func Deleted(cluster *kkpv1.Cluster) bool {
	return !cluster.DeletionTimestamp.IsZero()
}

// BelongsTo says whether a Cluster is for the controllers with this --worker-name; both are empty as a rule.
func BelongsTo(cluster *kkpv1.Cluster, workerName string) bool {
	return cluster.Labels[kkpv1.LabelWorkerName] == workerName
}
