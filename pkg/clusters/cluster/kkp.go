package cluster

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

const namespaceNameField = "status.namespaceName"

// NamespacePrefix and a Cluster's name form the name of its namespace on the seed.
const NamespacePrefix = "cluster-"

// IndexNamespaceName registers the index that Find uses. Call it once, before the manager starts.
func IndexNamespaceName(ctx context.Context, indexer client.FieldIndexer) error {
	return indexer.IndexField(ctx, &kkpv1.Cluster{}, namespaceNameField, func(object client.Object) []string {
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
	absences
}

// NewKKPFinder needs the index of IndexNamespaceName. The uncached reader is for Live, Gone and Annotate.
func NewKKPFinder(cached, uncached client.Reader, writer client.Writer) *KKPFinder {
	return &KKPFinder{cached: cached, uncached: uncached, writer: writer, absences: newAbsences()}
}

// Find implements Finder: it finds the Cluster whose status.namespaceName is the Ref's namespace.
func (f *KKPFinder) Find(ctx context.Context, ref target.Ref) (target.Description, error) {
	var list kkpv1.ClusterList
	if err := f.cached.List(ctx, &list, client.MatchingFields{namespaceNameField: ref.Namespace}); err != nil {
		return target.Description{}, fmt.Errorf("listing the Clusters of namespace %q: %w", ref.Namespace, err)
	}
	unknown := &UnknownError{Namespace: ref.Namespace, Name: ref.Name}
	if len(list.Items) == 1 {
		if found := Describe(&list.Items[0]); ref.Matches(found.Ref) {
			return found, nil
		}
		return target.Description{}, unknown
	}
	for _, item := range list.Items {
		unknown.Clusters = append(unknown.Clusters, item.Name)
	}
	return target.Description{}, unknown
}

// List implements Finder. The cache owns the objects of the result.
func (f *KKPFinder) List(ctx context.Context) ([]target.Description, error) {
	var list kkpv1.ClusterList
	if err := f.cached.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Clusters: %w", err)
	}
	described := make([]target.Description, len(list.Items))
	for i := range list.Items {
		described[i] = Describe(&list.Items[i])
	}
	return described, nil
}

// Watch implements Finder.
func (f *KKPFinder) Watch(informers cache.Cache, requests Requests, relevant Relevant) source.Source {
	changed := handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, found *kkpv1.Cluster) []reconcile.Request {
		return requests(ctx, Describe(found))
	})
	return source.Kind(informers, &kkpv1.Cluster{}, changed, predicate.TypedFuncs[*kkpv1.Cluster]{
		UpdateFunc: func(update event.TypedUpdateEvent[*kkpv1.Cluster]) bool {
			if relevant == nil {
				return differs(update.ObjectOld, update.ObjectNew)
			}
			return relevant(Describe(update.ObjectOld), Describe(update.ObjectNew))
		},
	})
}

// differs ignores heartbeats: the status fields that our type has are only those that add-ons depend on.
func differs(before, after *kkpv1.Cluster) bool {
	return before.Generation != after.Generation || !maps.Equal(before.Labels, after.Labels) ||
		!maps.Equal(before.Annotations, after.Annotations) ||
		// A deletionTimestamp alone changes no generation of KKP's kinds.
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		!equality.Semantic.DeepEqual(before.Status, after.Status)
}

// Inform starts a watch of Clusters in a cache, also on replicas that don't lead. It calls removed, if not nil, with
// Clusters that are deleted or change their Ref.
func (f *KKPFinder) Inform(ctx context.Context, informers cache.Cache, removed func(target.Ref)) error {
	_, err := onChange(ctx, informers, &kkpv1.Cluster{}, func(before, after *kkpv1.Cluster) {
		if removed != nil && before != nil && (after == nil || Describe(before).Ref != Describe(after).Ref) {
			removed(Describe(before).Ref)
		}
	})
	if err != nil {
		return fmt.Errorf("watching Clusters: %w", err)
	}
	return nil
}

// Live implements LiveReader.
func (f *KKPFinder) Live(ctx context.Context, ref target.Ref) (target.Description, error) {
	found, err := f.get(ctx, ref)
	if err != nil {
		return target.Description{}, err
	}
	return Describe(found), nil
}

// get reads a Cluster past the cache.
func (f *KKPFinder) get(ctx context.Context, ref target.Ref) (*kkpv1.Cluster, error) {
	found := &kkpv1.Cluster{}
	if err := f.uncached.Get(ctx, client.ObjectKey{Name: ref.Name}, found); err != nil {
		return nil, fmt.Errorf("getting Cluster %q: %w", ref.Name, err)
	}
	if found.UID != ref.UID {
		return nil, apierrors.NewNotFound(kkpv1.GroupVersion.WithResource("clusters").GroupResource(), ref.Name)
	}
	return found, nil
}

// Annotate implements Finder.
func (f *KKPFinder) Annotate(ctx context.Context, ref target.Ref, change func(annotations map[string]string) error) error {
	found, err := f.get(ctx, ref)
	if err != nil {
		return err
	}
	return annotate(ctx, f.writer, found, change)
}

// annotate edits a Cluster's annotations, based on the version that was read.
func annotate(ctx context.Context, writer client.Writer, found client.Object, change func(annotations map[string]string) error) error {
	edited := maps.Clone(found.GetAnnotations())
	if edited == nil {
		edited = map[string]string{}
	}
	if err := change(edited); err != nil {
		return err
	}
	if maps.Equal(found.GetAnnotations(), edited) {
		return nil
	}
	wanted, _ := found.DeepCopyObject().(client.Object) // a copy has the same type
	wanted.SetAnnotations(edited)
	patch := client.MergeFromWithOptions(found, client.MergeFromWithOptimisticLock{})
	if err := writer.Patch(ctx, wanted, patch); err != nil {
		return fmt.Errorf("patching the annotations of Cluster %q: %w", found.GetName(), err)
	}
	return nil
}

// Gone implements Finder: the API server has to answer 404, or another UID, twice, GoneInterval apart, while it
// serves the kind. A 403, a missing CRD or a failed call resets the first answer.
func (f *KKPFinder) Gone(ctx context.Context, ref target.Ref) (bool, error) {
	asked := target.Ref{Name: ref.Name, UID: ref.UID} // the Cluster's own name: its namespace may change
	absent, err := f.isAbsent(ctx, asked)
	return f.confirm(asked, absent, err)
}

// isAbsent asks the API server once. A 404 counts only if the kind can be listed: without CRD every answer is 404.
func (f *KKPFinder) isAbsent(ctx context.Context, ref target.Ref) (bool, error) {
	var cluster kkpv1.Cluster
	err := f.uncached.Get(ctx, client.ObjectKey{Name: ref.Name}, &cluster)
	if err == nil {
		return ref.UID != "" && cluster.UID != ref.UID, nil
	}
	if !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("getting Cluster %q: %w", ref.Name, err)
	}
	if err := f.uncached.List(ctx, &kkpv1.ClusterList{}, client.Limit(1)); err != nil {
		return false, fmt.Errorf("listing Clusters, while %q is missing: %w", ref.Name, err)
	}
	return true, nil
}
