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
	"github.com/trellis-addons/trellis/pkg/target"
	"github.com/trellis-addons/trellis/pkg/text"
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

// Request asks for a pass over a cluster. Of KKP's it names the namespace only: passes also run
// where no Cluster has the namespace, or where two claim it. Of others it names both.
func Request(ref target.Ref) reconcile.Request {
	if ref.Name == "" || ref.Kind == target.KindKKP {
		return reconcile.Request{NamespacedName: types.NamespacedName{Name: ref.Namespace}}
	}
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}}
}

// RequestOf asks for a pass over the cluster of an installation.
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

// Passes asks for a pass over a changed cluster, once it has a namespace.
func Passes(_ context.Context, changed target.Description) []reconcile.Request {
	if changed.Namespace == "" {
		return nil
	}
	return []reconcile.Request{Request(changed.Ref)}
}

// Requested is the cluster that a pass is over: without a name, KKP's of a namespace.
func Requested(request reconcile.Request) target.Ref {
	if request.Namespace == "" {
		return target.Ref{Namespace: request.Name}
	}
	return target.Ref{Namespace: request.Namespace, Name: request.Name}
}

// InstallationsOf selects the AddonInstallations of a cluster's namespace. Which of them are the
// cluster's own is target.Ref.Has to say: see OnlyOf.
func InstallationsOf(ref target.Ref) client.ListOption { return client.InNamespace(ref.Namespace) }

// OnlyOf leaves of a namespace's AddonInstallations those of one cluster, in the same array.
func OnlyOf(ref target.Ref, installations []v1.AddonInstallation) []v1.AddonInstallation {
	return slices.DeleteFunc(installations, func(one v1.AddonInstallation) bool { return !ref.Has(&one) })
}

// OfNone leaves of a namespace's AddonInstallations those for which no cluster was ever found, in the same array.
func OfNone(installations []v1.AddonInstallation) []v1.AddonInstallation {
	return slices.DeleteFunc(installations, func(one v1.AddonInstallation) bool { return one.Status.Cluster != nil })
}

// GoesWithFormer says whether an installation is going with the Cluster that had this one's name
// before: nothing of it is to come here. In KKP's namespaces nothing goes with a Cluster by itself.
func GoesWithFormer(ref target.Ref, one *v1.AddonInstallation) bool {
	known := one.Status.Cluster
	return !ref.IsKKP() && !one.DeletionTimestamp.IsZero() && known != nil && known.UID != ref.UID
}

// AvailableOf is the key of the AddonCatalogue that says what a cluster is offered.
func AvailableOf(ref target.Ref) client.ObjectKey {
	key := client.ObjectKey{Namespace: ref.Namespace, Name: v1.AvailableCatalogue}
	if ref.Name != "" && !ref.IsKKP() {
		key.Name = target.Shortened(v1.AvailableCatalogue+"-"+ref.Name, maximumName)
	}
	return key
}

// maximumName of an object, in characters.
const maximumName = 253

// HeldAvailable restricts a cache to these catalogues.
func HeldAvailable(transform toolscache.TransformFunc) cache.ByObject {
	return cache.ByObject{Label: labels.SelectorFromSet(labels.Set{v1.LabelRole: v1.RoleAvailable}), Transform: transform}
}

// UnknownError says that a namespace has no Cluster, or several, or none of the requested name. It
// is no reason to remove anything.
type UnknownError struct {
	Namespace string
	// Name of the requested Cluster; empty: KKP's.
	Name string
	// Clusters that claim the namespace, or the name: none, or at least two.
	Clusters []string
	// Kinds that each have a Cluster of the requested name.
	Kinds []string
	// Others are Clusters of the namespace that could have been named.
	Others []string
}

// IsContested says that there are several Clusters, rather than none: nothing is known of them then.
func (e *UnknownError) IsContested() bool { return len(e.Clusters)+len(e.Kinds) > 0 }

// and joins what two kinds of clusters say of one Ref.
func (e *UnknownError) and(other *UnknownError) *UnknownError {
	joined := *e
	joined.Clusters = slices.Concat(e.Clusters, other.Clusters)
	joined.Others = slices.Concat(e.Others, other.Others)
	return &joined
}

func (e *UnknownError) Error() string {
	switch {
	case len(e.Kinds) > 0:
		return fmt.Sprintf("several Clusters of namespace %q are named %q, of kinds %s: none is believed", e.Namespace, e.Name,
			text.Names(e.Kinds, othersShown))
	case len(e.Clusters) == 0 && len(e.Others) > 0 && e.Name != "":
		return fmt.Sprintf("namespace %q has no Cluster %q, but %s: spec.clusterName can't be changed, so make the installation anew for one of "+
			"these, or make that Cluster", e.Namespace, e.Name, e.OtherNames())
	case len(e.Clusters) == 0 && len(e.Others) > 0:
		return fmt.Sprintf("set spec.clusterName to a Cluster of namespace %q: it has %s", e.Namespace, e.OtherNames())
	case len(e.Clusters) == 0 && e.Name != "":
		return fmt.Sprintf("no Cluster %q has namespace %q", e.Name, e.Namespace)
	case len(e.Clusters) == 0:
		return fmt.Sprintf("no Cluster has namespace %q", e.Namespace)
	}
	return fmt.Sprintf("several Clusters have namespace %q: %q", e.Namespace, e.Clusters)
}

// OtherNames lists the first few of Others, always the same ones.
func (e *UnknownError) OtherNames() string {
	return text.Names(slices.Sorted(slices.Values(e.Others)), othersShown)
}

// othersShown is how many names of Clusters a message has.
const othersShown = 10
