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

// Finder finds the user clusters of a seed: all that depends on the kind of object that stands for one. KKPFinder is the
// one implementation so far.
type Finder interface {
	// Find is the one cluster that a Ref means; else the error is an *UnknownError, or a failed read.
	Find(ctx context.Context, ref target.Ref) (target.Description, error)
	// List gives all clusters.
	List(ctx context.Context) ([]target.Description, error)
	// Gone says whether a cluster that was seen before does not exist any more; without a UID, any of its name. The first
	// look is kept and false is returned; ask again after GoneInterval. An error is never a reason to let go of anything.
	Gone(ctx context.Context, ref target.Ref) (bool, error)
	// Annotate reads a cluster's annotations past caches, has them changed, and writes what differs, unless the object
	// changed in between: then the error is a conflict (apierrors.IsConflict). Errors of change are returned as they are,
	// and nothing is written. A cluster that is gone, or another one by now, is not found (apierrors.IsNotFound).
	Annotate(ctx context.Context, ref target.Ref, change func(annotations map[string]string) error) error
	// Watch has a controller asked, out of the manager's cache, for what the changes of clusters are about. Nil for relevant:
	// each change of what is read of a cluster counts.
	Watch(informers cache.Cache, requests Requests, relevant Relevant) source.Source
}

// Requests are what to look at when a cluster changes.
type Requests = func(ctx context.Context, changed target.Description) []reconcile.Request

// Relevant says whether a change of a cluster counts. That one comes or goes always does.
type Relevant = func(before, after target.Description) bool

// Request asks for a pass over a cluster. It goes by the namespace, since a pass comes there also where no Cluster has it any
// more, or where two claim it.
func Request(ref target.Ref) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: ref.Namespace}}
}

// Passes asks for a pass over each cluster that changes, once it has a namespace.
func Passes(_ context.Context, changed target.Description) []reconcile.Request {
	if changed.Namespace == "" {
		return nil
	}
	return []reconcile.Request{Request(changed.Ref)}
}

// Requested is the cluster that a pass is over.
func Requested(request reconcile.Request) target.Ref { return target.Ref{Namespace: request.Name} }

// InstallationsOf lists the AddonInstallations of the clusters that a Ref means: those of its namespace.
func InstallationsOf(ref target.Ref) client.ListOption { return client.InNamespace(ref.Namespace) }

// AvailableOf is where the AddonCatalogue stands that says what a cluster is offered.
func AvailableOf(ref target.Ref) client.ObjectKey {
	return client.ObjectKey{Namespace: ref.Namespace, Name: v1.AvailableCatalogue}
}

// HeldAvailable has a cache hold these catalogues, and no others.
func HeldAvailable(transform toolscache.TransformFunc) cache.ByObject {
	return cache.ByObject{Field: selectors.OneTermEqualSelector("metadata.name", v1.AvailableCatalogue), Transform: transform}
}

// UnknownError says that a namespace has no Cluster, or more than one. It is never a reason to remove anything.
type UnknownError struct {
	Namespace string
	// Name of the Cluster that was asked for; empty: any.
	Name string
	// Clusters that claim the namespace; empty, or two and more.
	Clusters []string
}

// Error implements error.
func (e *UnknownError) Error() string {
	switch {
	case len(e.Clusters) == 0 && e.Name != "":
		return fmt.Sprintf("no Cluster %q has namespace %q", e.Name, e.Namespace)
	case len(e.Clusters) == 0:
		return fmt.Sprintf("no Cluster has namespace %q", e.Namespace)
	}
	return fmt.Sprintf("several Clusters have namespace %q: %q", e.Namespace, e.Clusters)
}

// GoneInterval is how far apart the two looks of Gone are; come back after it.
const GoneInterval = 30 * time.Second
