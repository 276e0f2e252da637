package cluster

import (
	"context"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/target"
)

// Key is what a controller keeps the state of a cluster by: the one of Request.
type Key = types.NamespacedName

// KeyOf a cluster, found or asked for.
func KeyOf(ref target.Ref) Key { return Request(ref).NamespacedName }

// KeysOf are those that AddonInstallations of a cluster can ask for it by, its own first: KKP's may be
// named too.
func KeysOf(ref target.Ref) []Key {
	own := KeyOf(ref)
	named := Key{Namespace: ref.Namespace, Name: ref.Name}
	if ref.Name == "" || named == own {
		return []Key{own}
	}
	return []Key{own, named}
}

// IsAskedFor says whether a pass is the one over a cluster that it found: KKP's may be found by a name
// too, and has passes by its namespace.
func IsAskedFor(asked target.Ref, found target.Description) bool {
	return KeyOf(asked) == KeyOf(found.Ref)
}

// PassesIn asks for passes over all clusters of a namespace.
func PassesIn(ctx context.Context, finder Finder, namespace string) []reconcile.Request {
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

// PassesOfAvailable asks for the pass over the cluster that an available catalogue is of: its owner
// says which. Of one that lost its owner, all of the namespace could be meant.
func PassesOfAvailable(ctx context.Context, finder Finder, object client.Object) []reconcile.Request {
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
	return PassesIn(ctx, finder, ref.Namespace)
}

// KKPVersionFor a cluster, of a seed whose platform has some version: outside of KKP it is none.
func KKPVersionFor(ref target.Ref, platform string) string {
	if ref.IsKKP() {
		return platform
	}
	return catalogue.OutsideKKP
}
