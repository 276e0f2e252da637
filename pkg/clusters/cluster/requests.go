package cluster

import (
	"context"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// Key identifies a cluster in the memory of a controller. It is the key of Request.
type Key = types.NamespacedName

// KeyOf is the key of a cluster, found or requested.
func KeyOf(ref target.Ref) Key { return Request(ref).NamespacedName }

// KeysOf are the keys by which AddonInstallations can refer to a cluster, its own first: KKP's may be named too.
func KeysOf(ref target.Ref) []Key {
	own := KeyOf(ref)
	named := Key{Namespace: ref.Namespace, Name: ref.Name}
	if ref.Name == "" || named == own {
		return []Key{own}
	}
	return []Key{own, named}
}

// IsAskedFor reports whether a reconciliation is that of the cluster that it found. KKP's can be found by a name too,
// but is reconciled by its namespace.
func IsAskedFor(asked target.Ref, found target.Description) bool {
	return KeyOf(asked) == KeyOf(found.Ref)
}

// RequestsIn are the requests to reconcile all clusters of a namespace.
func RequestsIn(ctx context.Context, finder Finder, namespace string) []reconcile.Request {
	requests := []reconcile.Request{Request(target.Ref{Namespace: namespace})}
	for _, name := range othersIn(ctx, finder, namespace) {
		requests = append(requests, Request(target.Ref{Namespace: namespace, Name: name}))
	}
	return requests
}

// othersIn are the names of the Clusters in a namespace that are not KKP's.
func othersIn(ctx context.Context, finder Finder, namespace string) []string {
	_, err := finder.Find(ctx, target.Ref{Kind: target.KindClusterAPI, Namespace: namespace})
	if unknown, isUnknown := errors.AsType[*UnknownError](err); isUnknown {
		return unknown.Others
	}
	return nil
}

// RequestsOfAvailable is the request to reconcile the cluster of an available catalogue, which its owner names. Without
// an owner, the result has all clusters of the namespace.
func RequestsOfAvailable(ctx context.Context, finder Finder, object client.Object) []reconcile.Request {
	ref := target.Ref{Namespace: object.GetNamespace()}
	for _, owner := range object.GetOwnerReferences() {
		if group, _, _ := strings.Cut(owner.APIVersion, "/"); group == target.GroupClusterAPI && owner.Kind == target.KindClusterAPI.Kind {
			ref.Name = owner.Name
			return []reconcile.Request{Request(ref)}
		}
	}
	if object.GetName() == v1.AvailableCatalogue {
		return []reconcile.Request{Request(ref)}
	}
	return RequestsIn(ctx, finder, ref.Namespace)
}
