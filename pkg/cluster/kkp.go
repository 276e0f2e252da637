package cluster

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
)

// NamespaceNameField is the index of Clusters by the namespace they have on the seed.
const NamespaceNameField = "status.namespaceName"

// NamespacePrefix and a Cluster's name are its namespace's name on the seed.
const NamespacePrefix = "cluster-"

// IndexNamespaceName registers the index that InNamespace reads; call it once, before the manager starts.
func IndexNamespaceName(ctx context.Context, indexer client.FieldIndexer) error {
	return indexer.IndexField(ctx, &kkpv1.Cluster{}, NamespaceNameField, func(object client.Object) []string {
		if name := object.(*kkpv1.Cluster).Status.NamespaceName; name != "" {
			return []string{name}
		}
		return nil
	})
}

// KKPFinder finds KKP's Clusters.
type KKPFinder struct {
	cached, uncached client.Reader
	writer           client.Writer
	clock            clock.PassiveClock

	mutex sync.Mutex
	// absent is when a Cluster was first found missing.
	absent map[Identity]time.Time
}

// NewKKPFinder finds by a cached reader with the index of IndexNamespaceName, and asks the API server itself whether a
// Cluster is gone and what its annotations are.
func NewKKPFinder(cached, uncached client.Reader, writer client.Writer) *KKPFinder {
	return &KKPFinder{cached: cached, uncached: uncached, writer: writer, clock: clock.RealClock{}, absent: map[Identity]time.Time{}}
}

// InNamespace is the one Cluster whose status.namespaceName is the namespace; else the error is an UnknownError, or the
// reader's.
func (f *KKPFinder) InNamespace(ctx context.Context, namespace string) (*kkpv1.Cluster, error) {
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

// List gives all Clusters of the cache, which still owns them.
func (f *KKPFinder) List(ctx context.Context) ([]kkpv1.Cluster, error) {
	var list kkpv1.ClusterList
	if err := f.cached.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Clusters: %w", err)
	}
	return list.Items, nil
}

// Watch tells about changes of Clusters.
func (f *KKPFinder) Watch(informers cache.Cache, changed Handler, relevant ...predicate.TypedPredicate[*kkpv1.Cluster]) source.Source {
	return source.Kind(informers, &kkpv1.Cluster{}, changed, relevant...)
}

// Annotate changes a Cluster's annotations.
func (f *KKPFinder) Annotate(ctx context.Context, identity Identity, change func(annotations map[string]string) error) error {
	var found kkpv1.Cluster
	if err := f.uncached.Get(ctx, client.ObjectKey{Name: identity.Name}, &found); err != nil {
		return fmt.Errorf("getting Cluster %q: %w", identity.Name, err)
	}
	if found.UID != identity.UID {
		return apierrors.NewNotFound(kkpv1.GroupVersion.WithResource("clusters").GroupResource(), identity.Name)
	}
	wanted := found.DeepCopy()
	if wanted.Annotations == nil {
		wanted.Annotations = map[string]string{}
	}
	if err := change(wanted.Annotations); err != nil {
		return err
	}
	if maps.Equal(found.Annotations, wanted.Annotations) {
		return nil
	}
	patch := client.MergeFromWithOptions(&found, client.MergeFromWithOptimisticLock{})
	if err := f.writer.Patch(ctx, wanted, patch); err != nil {
		return fmt.Errorf("patching the annotations of Cluster %q: %w", identity.Name, err)
	}
	return nil
}

// Gone says whether a Cluster that was seen before does not exist any more: the API server answers 404, or another UID,
// twice, GoneInterval apart, while it serves the kind. The first look is kept and false is returned; ask again after
// GoneInterval. A 403, a missing CRD and a failed call are never gone; they forget the first look.
func (f *KKPFinder) Gone(ctx context.Context, identity Identity) (bool, error) {
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
func (f *KKPFinder) isAbsent(ctx context.Context, identity Identity) (bool, error) {
	var cluster kkpv1.Cluster
	err := f.uncached.Get(ctx, client.ObjectKey{Name: identity.Name}, &cluster)
	if err == nil {
		return identity.UID != "" && cluster.UID != identity.UID, nil
	}
	if !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("getting Cluster %q: %w", identity.Name, err)
	}
	if err := f.uncached.List(ctx, &kkpv1.ClusterList{}, client.Limit(1)); err != nil {
		return false, fmt.Errorf("listing Clusters, while %q is missing: %w", identity.Name, err)
	}
	return true, nil
}
