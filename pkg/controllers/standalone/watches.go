package standalone

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-addons/trellis/pkg/cluster"
)

// kubeconfigSecret is the Secret whose coming makes a Cluster usable.
var kubeconfigSecret = cluster.KubeconfigSecrets()[0]

// kubeconfigSecrets lets only those Secrets by.
var kubeconfigSecrets = predicate.NewPredicateFuncs(func(object client.Object) bool {
	return object.GetName() == kubeconfigSecret
})

// clusterOfNamespace maps a Namespace to its Cluster, by name.
func clusterOfNamespace(_ context.Context, object client.Object) []reconcile.Request {
	return clusterNamed(object.GetName())
}

// clusterOfSecret maps a Secret to the Cluster of its namespace.
func clusterOfSecret(_ context.Context, object client.Object) []reconcile.Request {
	return clusterNamed(object.GetNamespace())
}

func clusterNamed(namespace string) []reconcile.Request {
	name, found := strings.CutPrefix(namespace, cluster.NamespacePrefix)
	if !found {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
}
