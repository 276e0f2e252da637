package cluster

import (
	"context"
	"fmt"
	"time"

	selectors "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/target"
)

// Finder finds the user clusters of a seed, whatever kind of object stands for them.
type Finder interface {
	// Find finds the one cluster that a Ref means. The error is an *UnknownError, or of the reader.
	Find(ctx context.Context, ref target.Ref) (target.Description, error)
	// List lists all clusters.
	List(ctx context.Context) ([]target.Description, error)
	// Gone says whether a cluster that existed does not exist any more; without a UID, any of its
	// name. The first call returns false; ask again after GoneInterval. An error never means gone.
	Gone(ctx context.Context, ref target.Ref) (bool, error)
	// Annotate reads a cluster's annotations past caches, lets change edit them, and writes what
	// differs. An error of change is returned as it is, and nothing is written. Other errors:
	// conflict (apierrors.IsConflict), or not found for a Cluster that is gone or has another UID.
	Annotate(ctx context.Context, ref target.Ref, change func(annotations map[string]string) error) error
	// Watch enqueues requests when clusters change. Without relevant, all that we read counts.
	Watch(informers cache.Cache, requests Requests, relevant Relevant) source.Source
}

// LiveReader describes clusters past caches.
type LiveReader interface {
	// Live is a cluster as the API server has it now. Errors: not found for one that is gone or has
	// another UID, or a call that failed.
	Live(ctx context.Context, ref target.Ref) (target.Description, error)
}

// Requests are the requests to enqueue when a cluster changes.
type Requests = func(ctx context.Context, changed target.Description) []reconcile.Request

// Relevant says whether a change of a cluster counts. Creations and deletions always do.
type Relevant = func(before, after target.Description) bool

// Request asks for a pass over a cluster. It names the namespace only: passes also run where no
// Cluster has the namespace, or where two claim it.
func Request(ref target.Ref) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: ref.Namespace}}
}

// Passes asks for a pass over a changed cluster, once it has a namespace.
func Passes(_ context.Context, changed target.Description) []reconcile.Request {
	if changed.Namespace == "" {
		return nil
	}
	return []reconcile.Request{Request(changed.Ref)}
}

// Requested is the cluster that a pass is over.
func Requested(request reconcile.Request) target.Ref { return target.Ref{Namespace: request.Name} }

// InstallationsOf selects the AddonInstallations of a cluster: those of its namespace.
func InstallationsOf(ref target.Ref) client.ListOption { return client.InNamespace(ref.Namespace) }

// AvailableOf is the key of the AddonCatalogue that says what a cluster is offered.
func AvailableOf(ref target.Ref) client.ObjectKey {
	return client.ObjectKey{Namespace: ref.Namespace, Name: v1.AvailableCatalogue}
}

// HeldAvailable restricts a cache to these catalogues.
func HeldAvailable(transform toolscache.TransformFunc) cache.ByObject {
	return cache.ByObject{Field: selectors.OneTermEqualSelector("metadata.name", v1.AvailableCatalogue), Transform: transform}
}

// UnknownError says that a namespace has no Cluster, or several. It is no reason to remove
// anything.
type UnknownError struct {
	Namespace string
	// Name of the requested Cluster; empty: any.
	Name string
	// Clusters that claim the namespace: none, or at least two.
	Clusters []string
}

func (e *UnknownError) Error() string {
	switch {
	case len(e.Clusters) == 0 && e.Name != "":
		return fmt.Sprintf("no Cluster %q has namespace %q", e.Name, e.Namespace)
	case len(e.Clusters) == 0:
		return fmt.Sprintf("no Cluster has namespace %q", e.Namespace)
	}
	return fmt.Sprintf("several Clusters have namespace %q: %q", e.Namespace, e.Clusters)
}

// GoneInterval is the time between the two calls of Gone.
const GoneInterval = 30 * time.Second
