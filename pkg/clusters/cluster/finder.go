package cluster

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// Finder finds the user clusters of a seed, for every kind of object that represents one.
type Finder interface {
	// Find finds the one cluster that a Ref means. The error is an *UnknownError, or the reader's.
	Find(ctx context.Context, ref target.Ref) (target.Description, error)
	// List lists all clusters.
	List(ctx context.Context) ([]target.Description, error)
	// Gone reports whether a cluster that existed no longer exists; without a UID, whether no cluster of its name
	// does. The first call returns false; call again after GoneInterval. An error never means gone.
	Gone(ctx context.Context, ref target.Ref) (bool, error)
	// Annotate reads a cluster's annotations past caches, lets change edit them, and writes the difference. It
	// returns an error of change unchanged, and writes nothing then. Other errors: conflict (apierrors.IsConflict),
	// or not found for a Cluster that is gone or has another UID.
	Annotate(ctx context.Context, ref target.Ref, change func(annotations map[string]string) error) error
	// Watch enqueues requests when clusters change. Without relevant, every change of a field that Trellis reads
	// counts.
	Watch(informers cache.Cache, requests Requests, relevant Relevant) source.Source
}

// LiveReader describes clusters past caches.
type LiveReader interface {
	// Live is the cluster as the API server has it now. Errors: not found for one that is gone or has another UID, or
	// those of the call.
	Live(ctx context.Context, ref target.Ref) (target.Description, error)
}

// Requests are the requests to enqueue when a cluster changes.
type Requests = func(ctx context.Context, changed target.Description) []reconcile.Request

// Relevant reports whether a change of a cluster counts. Creations and deletions always do.
type Relevant = func(before, after target.Description) bool

// Request is the request to reconcile a cluster. For a KKP cluster it has only the namespace: reconciliations also
// run where no Cluster has the namespace, or where two claim it. For other clusters it has namespace and name.
func Request(ref target.Ref) reconcile.Request {
	if ref.Name == "" || ref.Kind == target.KindKKP {
		return reconcile.Request{NamespacedName: types.NamespacedName{Name: ref.Namespace}}
	}
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}}
}

// RequestOf is the request to reconcile the cluster of an installation.
func RequestOf(ctx context.Context, finder Finder, installation *v1.AddonInstallation) reconcile.Request {
	asked := target.InstalledIn(installation)
	if asked.Name == "" {
		return Request(asked)
	}
	if found, err := finder.Find(ctx, asked); err == nil {
		return Request(found.Ref)
	}
	return Request(asked)
}

// RequestsFor are the requests to reconcile a changed cluster, once it has a namespace.
func RequestsFor(_ context.Context, changed target.Description) []reconcile.Request {
	if changed.Namespace == "" {
		return nil
	}
	return []reconcile.Request{Request(changed.Ref)}
}

// Requested is the cluster of a reconciliation: without a name, KKP's of the namespace.
func Requested(request reconcile.Request) target.Ref {
	if request.Namespace == "" {
		return target.Ref{Namespace: request.Name}
	}
	return target.Ref{Namespace: request.Namespace, Name: request.Name}
}

// InstallationsOf selects the AddonInstallations in a cluster's namespace. target.Ref.Has decides which of them are
// the cluster's own: see OnlyOf.
func InstallationsOf(ref target.Ref) client.ListOption { return client.InNamespace(ref.Namespace) }

// OnlyOf filters a namespace's AddonInstallations, in the same array: it keeps those of one cluster.
func OnlyOf(ref target.Ref, installations []v1.AddonInstallation) []v1.AddonInstallation {
	return slices.DeleteFunc(installations, func(one v1.AddonInstallation) bool { return !ref.Has(&one) })
}

// OfNone filters a namespace's AddonInstallations, in the same array: it keeps those whose cluster was never found.
func OfNone(installations []v1.AddonInstallation) []v1.AddonInstallation {
	return slices.DeleteFunc(installations, func(one v1.AddonInstallation) bool { return one.Status.Cluster != nil })
}

// GoesWithPrevious reports whether an installation is deleted with the previous Cluster of this name: this cluster gets
// nothing of it. In KKP's namespaces no installation is deleted with its Cluster automatically.
func GoesWithPrevious(ref target.Ref, one *v1.AddonInstallation) bool {
	known := one.Status.Cluster
	return !ref.IsKKP() && !one.DeletionTimestamp.IsZero() && known != nil && known.UID != ref.UID
}

// AvailableOf is the key of a cluster's available catalogue.
func AvailableOf(ref target.Ref) client.ObjectKey {
	return client.ObjectKey{Namespace: ref.Namespace, Name: ref.AvailableName()}
}

// HeldAvailable restricts a cache to available catalogues.
func HeldAvailable(transform toolscache.TransformFunc) cache.ByObject {
	return cache.ByObject{Label: labels.SelectorFromSet(labels.Set{v1.LabelRole: v1.RoleAvailable}), Transform: transform}
}

// UnknownError reports that a namespace has no Cluster, or several, or none of the requested name. It is no reason to
// remove anything.
type UnknownError struct {
	Namespace string
	// Name of the requested Cluster; empty: KKP's.
	Name string
	// Clusters that claim the namespace, or the name: none, or at least two.
	Clusters []string
	// Kinds that each have a Cluster of the requested name.
	Kinds []string
	// Others are other Clusters of the namespace that the request could have named.
	Others []string
}

// IsContested reports whether there are several Clusters, rather than none: the cluster is unknown then.
func (e *UnknownError) IsContested() bool { return len(e.Clusters)+len(e.Kinds) > 0 }

// and joins the errors of two kinds of clusters about one Ref.
func (e *UnknownError) and(other *UnknownError) *UnknownError {
	joined := *e
	joined.Clusters = slices.Concat(e.Clusters, other.Clusters)
	joined.Others = slices.Concat(e.Others, other.Others)
	return &joined
}

func (e *UnknownError) Error() string {
	switch {
	case len(e.Kinds) > 0:
		return fmt.Sprintf("several Clusters of namespace %q are named %q, of kinds %s: none is used", e.Namespace, e.Name,
			text.Names(e.Kinds, othersShown))
	case len(e.Clusters) == 0 && len(e.Others) > 0 && e.Name != "":
		return fmt.Sprintf("namespace %q has no Cluster %q, but %s: spec.clusterName can't be changed, so delete the installation and "+
			"create it again for one of these, or create that Cluster", e.Namespace, e.Name, e.OtherNames())
	case len(e.Clusters) == 0 && len(e.Others) > 0:
		return fmt.Sprintf("set spec.clusterName to a Cluster of namespace %q: it has %s", e.Namespace, e.OtherNames())
	case len(e.Clusters) == 0 && e.Name != "":
		return fmt.Sprintf("no Cluster %q has namespace %q: %s", e.Name, e.Namespace, wayToCluster)
	case len(e.Clusters) == 0:
		return fmt.Sprintf("no Cluster has namespace %q: %s", e.Namespace, wayToCluster)
	}
	return fmt.Sprintf("several Clusters have namespace %q: %q", e.Namespace, e.Clusters)
}

// wayToCluster is the advice for an installation whose namespace has no Cluster.
const wayToCluster = "check the namespace of the installation, which must be the namespace of its Cluster (with KKP, " +
	"status.namespaceName): create the Cluster, or delete the installation and create it again in the right namespace"

// OtherNames lists the first few of Others, always the same.
func (e *UnknownError) OtherNames() string {
	return text.Names(slices.Sorted(slices.Values(e.Others)), othersShown)
}

// othersShown is the maximum number of names of Clusters in a message.
const othersShown = 10
