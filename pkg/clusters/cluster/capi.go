package cluster

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	capiv1 "github.com/trellis-addons/trellis/apis/clusterapi/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// CAPIFinder finds Cluster API's Clusters, of which a namespace may have many. Until their kind is served it finds
// none, and reports none as gone. Finders creates it.
type CAPIFinder struct {
	cached, uncached client.Reader
	writer           client.Writer
	kinds            *optionalKinds
	planes           *controlPlanes
	view             *view
	objects          *objects
	absences
}

// servedVersion is the version of the watched Clusters; "": none are watched.
func (f *CAPIFinder) servedVersion() string {
	served, _ := f.kinds.begun(target.KindClusterAPI)
	return served.Version
}

// Find implements Finder. It needs a name.
func (f *CAPIFinder) Find(ctx context.Context, ref target.Ref) (target.Description, error) {
	unknown := &UnknownError{Namespace: ref.Namespace, Name: ref.Name}
	if f.servedVersion() == "" {
		return target.Description{}, unknown
	}
	if ref.Name != "" {
		found, err := f.get(ctx, f.cached, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name})
		if client.IgnoreNotFound(err) != nil {
			return target.Description{}, err
		}
		if err == nil && (ref.UID == "" || ref.UID == found.UID) {
			return f.describe(ctx, f.planes.objects, found)
		}
	}
	all, err := f.list(ctx, f.cached, client.InNamespace(ref.Namespace))
	if err != nil {
		return target.Description{}, err
	}
	for _, one := range all {
		unknown.Others = append(unknown.Others, one.Name)
	}
	return target.Description{}, unknown
}

// List implements Finder. The cache owns the data that the objects of the result share with it.
func (f *CAPIFinder) List(ctx context.Context) ([]target.Description, error) {
	if f.servedVersion() == "" {
		return nil, nil
	}
	all, err := f.list(ctx, f.cached, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	described := make([]target.Description, len(all))
	for i, one := range all {
		if described[i], err = f.describe(ctx, f.planes.objects, one); err != nil {
			return nil, err
		}
	}
	return described, nil
}

// hasOthers reports whether another Cluster has the same namespace. None has while the kind is not served.
func (f *CAPIFinder) hasOthers(ctx context.Context, than target.Ref) (bool, error) {
	if f.servedVersion() == "" {
		return false, nil
	}
	all, err := f.list(ctx, f.cached, client.InNamespace(than.Namespace), client.UnsafeDisableDeepCopy)
	return slices.ContainsFunc(all, func(one *capiv1.Cluster) bool { return one.UID != than.UID }), err
}

// describe describes a Cluster. It reads the object of the control plane with the reader.
func (f *CAPIFinder) describe(ctx context.Context, reader client.Reader, found *capiv1.Cluster) (target.Description, error) {
	version, err := f.planes.versionOf(ctx, reader, found)
	if err != nil {
		return target.Description{}, fmt.Errorf("describing Cluster %q: %w", found.Namespace+"/"+found.Name, err)
	}
	return describeCAPI(found, version), nil
}

// get reads a Cluster in the served version. It converts an object of v1beta1 to v1beta2: see capiv1.
func (f *CAPIFinder) get(ctx context.Context, reader client.Reader, key client.ObjectKey) (*capiv1.Cluster, error) {
	var object client.Object = &capiv1.Cluster{}
	if f.servedVersion() == capiv1.V1Beta1.Version {
		object = &capiv1.ClusterV1Beta1{}
	}
	if err := reader.Get(ctx, key, object); err != nil {
		return nil, fmt.Errorf("getting Cluster %q: %w", key, err)
	}
	return clusterIn(object), nil
}

// list lists Clusters in the served version.
func (f *CAPIFinder) list(ctx context.Context, reader client.Reader, options ...client.ListOption) ([]*capiv1.Cluster, error) {
	var current capiv1.ClusterList
	var previous capiv1.ClusterV1Beta1List
	var list client.ObjectList = &current
	if f.servedVersion() == capiv1.V1Beta1.Version {
		list = &previous
	}
	if err := reader.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("listing Cluster API's Clusters: %w", err)
	}
	all := make([]*capiv1.Cluster, 0, len(current.Items)+len(previous.Items))
	for i := range current.Items {
		all = append(all, clusterIn(&current.Items[i]))
	}
	for i := range previous.Items {
		all = append(all, clusterIn(&previous.Items[i]))
	}
	return all, nil
}

// Watch implements Finder. It ignores the given cache, since CAPIFinder has its own.
func (f *CAPIFinder) Watch(_ cache.Cache, requests Requests, relevant Relevant) source.Source {
	return f.view.watch(requests, relevant)
}

// Inform registers a function that is called with Clusters that are deleted or recreated. Nil registers none.
func (f *CAPIFinder) Inform(removed func(target.Ref)) {
	if removed != nil {
		f.view.subscribe(func(before, after *target.Description) {
			if before != nil && (after == nil || before.Ref != after.Ref) {
				removed(before.Ref)
			}
		})
	}
}

// Live implements LiveReader.
func (f *CAPIFinder) Live(ctx context.Context, ref target.Ref) (target.Description, error) {
	found, err := f.live(ctx, ref)
	if err != nil {
		return target.Description{}, err
	}
	return f.describe(ctx, f.uncached, found)
}

// live reads a Cluster past the cache.
func (f *CAPIFinder) live(ctx context.Context, ref target.Ref) (*capiv1.Cluster, error) {
	if f.servedVersion() == "" {
		return nil, &NotServedError{Kind: target.KindClusterAPI}
	}
	found, err := f.now(ctx, ref)
	if err != nil {
		return nil, err
	}
	if found.UID != ref.UID {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: capiv1.Group, Resource: "clusters"}, ref.Name)
	}
	return found, nil
}

// now reads the Cluster of a name past the cache. It returns "not found" only if Clusters can be listed: where the
// kind, or this version, is no longer served, every answer is 404.
func (f *CAPIFinder) now(ctx context.Context, ref target.Ref) (*capiv1.Cluster, error) {
	found, err := f.get(ctx, f.uncached, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name})
	if !apierrors.IsNotFound(err) {
		return found, err
	}
	_, unlisted := f.list(ctx, f.uncached, client.InNamespace(ref.Namespace), client.Limit(1))
	switch {
	case apierrors.IsNotFound(unlisted):
		return nil, &NotServedError{Kind: target.KindClusterAPI}
	case unlisted != nil:
		return nil, fmt.Errorf("while Cluster %q is missing: %w", ref.Name, unlisted)
	}
	return nil, err
}

// Annotate implements Finder.
func (f *CAPIFinder) Annotate(ctx context.Context, ref target.Ref, change func(annotations map[string]string) error) error {
	found, err := f.live(ctx, ref)
	if err != nil {
		return err
	}
	return annotate(ctx, f.writer, f.objectOf(found), change)
}

// objectOf is a Cluster as an object of the served version.
func (f *CAPIFinder) objectOf(found *capiv1.Cluster) client.Object {
	if f.servedVersion() == capiv1.V1Beta1.Version {
		return &capiv1.ClusterV1Beta1{Cluster: *found}
	}
	return found
}

// Gone implements Finder, as KKPFinder does. A Cluster whose kind is not served is never gone.
func (f *CAPIFinder) Gone(ctx context.Context, ref target.Ref) (bool, error) {
	if f.servedVersion() == "" {
		return false, nil
	}
	absent, err := f.isAbsent(ctx, ref)
	return f.confirm(ref, absent, err)
}

// isAbsent asks the API server once.
func (f *CAPIFinder) isAbsent(ctx context.Context, ref target.Ref) (bool, error) {
	found, err := f.now(ctx, ref)
	if err == nil {
		return ref.UID != "" && found.UID != ref.UID, nil
	}
	return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
}

// NotServedError reports that a kind of clusters is not served, or that this manager does not serve it.
type NotServedError struct{ Kind schema.GroupKind }

func (e *NotServedError) Error() string {
	return fmt.Sprintf("kind %s is not served, or is not one of this manager's --cluster-kinds", e.Kind)
}
