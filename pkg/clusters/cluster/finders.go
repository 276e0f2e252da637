package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	capiv1 "github.com/trellis-addons/trellis/apis/clusterapi/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// Kinds are the kinds of objects that represent clusters.
type Kinds struct {
	// Served are kinds of clusters: KindKKP, KindClusterAPI or both. No other kind is requested.
	Served []schema.GroupKind
	// ControlPlanes are the resources of control planes that may be read, for versions of Clusters of Cluster API.
	ControlPlanes []schema.GroupResource
}

// OnlyKKP are KKP's Clusters and no others.
var OnlyKKP = Kinds{Served: []schema.GroupKind{target.KindKKP}}

// Finders finds the clusters of all kinds that a seed's manager serves, each within a minute after its CRD is served.
// It implements Finder and LiveReader and is a manager.Runnable.
type Finders struct {
	served []schema.GroupKind
	// kkp and capi are nil if their kind is not to be served.
	kkp   *KKPFinder
	capi  *CAPIFinder
	kinds *optionalKinds
}

// Caches are those for objects of Cluster API. They hold only objects that were requested.
type Caches struct {
	// ControlPlanes is transformed by TrimControlPlane, Seen by PackObject.
	ControlPlanes, Seen cache.Cache
}

// NewFinders creates a Finder of a seed's clusters. Run it, and the caches, in its manager. The error is that of a
// call to the API server.
func NewFinders(ctx context.Context, seed cluster.Cluster, caches Caches, served Kinds) (*Finders, error) {
	f := &Finders{served: served.Served, kinds: newOptionalKinds(nil, seed.GetRESTMapper())}
	if slices.Contains(served.Served, target.KindKKP) {
		f.kkp = NewKKPFinder(seed.GetClient(), seed.GetAPIReader(), seed.GetClient())
		f.kinds.wanted = append(f.kinds.wanted, optionalKind{
			kind: target.KindKKP, begin: func(ctx context.Context, _ schema.GroupVersionKind) error {
				return IndexNamespaceName(ctx, seed.GetFieldIndexer())
			},
		})
	}
	if slices.Contains(served.Served, target.KindClusterAPI) {
		f.addCAPI(seed, caches, served.ControlPlanes)
	}
	for _, wanted := range f.kinds.wanted {
		if _, err := f.kinds.begin(ctx, wanted); err != nil {
			return nil, fmt.Errorf("looking for clusters: %w", err)
		}
	}
	return f, nil
}

func (f *Finders) addCAPI(seed cluster.Cluster, caches Caches, listed []schema.GroupResource) {
	f.kinds.newMapper = func() (meta.RESTMapper, error) {
		return apiutil.NewDynamicRESTMapper(seed.GetConfig(), seed.GetHTTPClient())
	}
	planes := newControlPlanes(caches.ControlPlanes, f.kinds, listed)
	view := newView(seed.GetCache(), planes)
	planes.changed, planes.allRead = view.planeChanged, view.lookAgain
	f.capi = &CAPIFinder{
		cached: seed.GetClient(), uncached: seed.GetAPIReader(), writer: seed.GetClient(), kinds: f.kinds, planes: planes, view: view,
		objects: newObjects(caches.Seen), absences: newAbsences(),
	}
	f.kinds.wanted = append(f.kinds.wanted, planes.wanted()...) // before Clusters, whose versions come from control planes
	f.kinds.wanted = append(f.kinds.wanted, optionalKind{
		kind: target.KindClusterAPI, versions: []string{capiv1.V1Beta2.Version, capiv1.V1Beta1.Version}, begin: view.begin,
	})
}

// Start looks for kinds that are not served yet, until the context ends. With Cluster API it also keeps checking
// served kinds, and ends with a MovedError once one is served only in other versions.
func (f *Finders) Start(ctx context.Context) error { return f.kinds.start(ctx) }

// NeedLeaderElection is false: waiting replicas answer webhooks and queries.
func (f *Finders) NeedLeaderElection() bool { return false }

// WhenServed calls a function once a kind of clusters is served: at once, if it is. It never calls it for a kind that
// this manager does not serve.
func (f *Finders) WhenServed(ctx context.Context, kind schema.GroupKind, call func(ctx context.Context) error) error {
	var now error
	isNow := true
	f.kinds.whenBegun(ctx, kind, func(ctx context.Context) {
		now = call(ctx)
		if now != nil && !isNow {
			ctrl.LoggerFrom(ctx).Error(now, "starting to watch a kind of Clusters", "kind", kind.String())
		}
	})
	isNow = false
	return now
}

// Serves reports whether this manager looks for Clusters of a kind.
func (f *Finders) Serves(kind schema.GroupKind) bool { return slices.Contains(f.served, kind) }

// hasKKP reports whether KKP's Clusters are watched.
func (f *Finders) hasKKP() bool {
	_, begun := f.kinds.begun(target.KindKKP)
	return f.kkp != nil && begun
}

// Find implements Finder. Without a name it returns KKP's Cluster of the namespace. If both kinds have a Cluster of
// the name, it returns neither.
func (f *Finders) Find(ctx context.Context, ref target.Ref) (target.Description, error) {
	var none target.Description
	inKKP, missesKKP, err := f.findKKP(ctx, ref)
	if err != nil {
		return none, err
	}
	inCAPI, missesCAPI, err := f.findCAPI(ctx, ref)
	switch {
	case err != nil:
		return none, err
	case missesKKP != nil && missesCAPI != nil:
		return none, missesKKP.and(missesCAPI)
	case missesKKP == nil && missesCAPI == nil:
		return none, &UnknownError{Namespace: ref.Namespace, Name: ref.Name, Kinds: []string{inKKP.Kind.String(), inCAPI.Kind.String()}}
	case missesKKP == nil:
		return inKKP, nil
	case slices.Contains(missesKKP.Clusters, inCAPI.Name): // it is one of several that claim the namespace
		return none, missesKKP
	}
	return inCAPI, nil
}

// findKKP finds a Cluster of KKP; unknown is the reason if there is none. The error is the reader's.
func (f *Finders) findKKP(ctx context.Context, ref target.Ref) (found target.Description, unknown *UnknownError, err error) {
	if !f.hasKKP() || !mayBe(ref, target.KindKKP) {
		return found, &UnknownError{Namespace: ref.Namespace, Name: ref.Name}, nil
	}
	found, err = f.kkp.Find(ctx, ref)
	if errors.As(err, &unknown) {
		return found, unknown, nil
	}
	return found, nil, err
}

// findCAPI finds a Cluster of Cluster API, as findKKP does.
func (f *Finders) findCAPI(ctx context.Context, ref target.Ref) (found target.Description, unknown *UnknownError, err error) {
	if f.capi == nil || !mayBe(ref, target.KindClusterAPI) {
		return found, &UnknownError{Namespace: ref.Namespace, Name: ref.Name}, nil
	}
	found, err = f.capi.Find(ctx, ref)
	if errors.As(err, &unknown) {
		return found, unknown, nil
	}
	return found, nil, err
}

func mayBe(ref target.Ref, kind schema.GroupKind) bool { return ref.Kind.Empty() || ref.Kind == kind }

// List implements Finder.
func (f *Finders) List(ctx context.Context) (all []target.Description, err error) {
	if f.hasKKP() {
		if all, err = f.kkp.List(ctx); err != nil {
			return nil, err
		}
	}
	if f.capi == nil {
		return all, nil
	}
	others, err := f.capi.List(ctx)
	if err != nil {
		return nil, err
	}
	return append(all, others...), nil
}

// Gone implements Finder. It asks for the Ref's kind or, if that is unknown, for all served kinds. A Cluster whose
// kind is not served is never gone.
func (f *Finders) Gone(ctx context.Context, ref target.Ref) (bool, error) {
	switch {
	case ref.Kind.Empty():
		return f.allGone(ctx, ref)
	case ref.Kind == target.KindKKP && f.hasKKP():
		return f.kkp.Gone(ctx, ref)
	case ref.Kind == target.KindClusterAPI && f.capi != nil:
		return f.capi.Gone(ctx, ref)
	}
	return false, nil
}

func (f *Finders) allGone(ctx context.Context, ref target.Ref) (bool, error) {
	for _, kind := range f.served {
		ref.Kind = kind
		if gone, err := f.Gone(ctx, ref); err != nil || !gone {
			return false, err
		}
	}
	return len(f.served) > 0, nil
}

// of is the finder of a kind; without a kind, KKP's.
func (f *Finders) of(kind schema.GroupKind) (oneKind, error) {
	switch {
	case kind == target.KindClusterAPI && f.capi != nil:
		return f.capi, nil
	case kind != target.KindClusterAPI && f.hasKKP():
		return f.kkp, nil
	}
	return nil, &NotServedError{Kind: kind}
}

// oneKind are the methods of the finder of one kind that Finders needs.
type oneKind interface {
	LiveReader
	Annotate(ctx context.Context, ref target.Ref, change func(annotations map[string]string) error) error
}

// Annotate implements Finder.
func (f *Finders) Annotate(ctx context.Context, ref target.Ref, change func(annotations map[string]string) error) error {
	one, err := f.of(ref.Kind)
	if err != nil {
		return err
	}
	return one.Annotate(ctx, ref, change)
}

// Live implements LiveReader.
func (f *Finders) Live(ctx context.Context, ref target.Ref) (target.Description, error) {
	one, err := f.of(ref.Kind)
	if err != nil {
		return target.Description{}, err
	}
	return one.Live(ctx, ref)
}

// Shares reports whether other Clusters have the same namespace as a cluster. For two of KKP's it is false: Find
// returns neither then.
func (f *Finders) Shares(ctx context.Context, ref target.Ref) (bool, error) {
	if f.capi != nil {
		isShared, err := f.capi.hasOthers(ctx, ref)
		if err != nil || isShared {
			return isShared, err
		}
	}
	if ref.Kind == target.KindKKP {
		return false, nil
	}
	_, unknown, err := f.findKKP(ctx, target.Ref{Kind: target.KindKKP, Namespace: ref.Namespace})
	return err == nil && unknown == nil, err
}
