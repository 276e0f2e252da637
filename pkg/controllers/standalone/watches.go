package standalone

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
)

// kubeconfigSecret is the Secret that a Cluster needs to be usable.
var kubeconfigSecret = cluster.KubeconfigSecrets()[0]

var kubeconfigSecrets = predicate.NewPredicateFuncs(func(object client.Object) bool {
	return object.GetName() == kubeconfigSecret
})

// toCluster maps an object to the Cluster whose name its namespace has.
func toCluster(namespaceOf func(client.Object) string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		name, found := strings.CutPrefix(namespaceOf(object), cluster.NamespacePrefix)
		if !found {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
	})
}
