package addonset

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// caches look up installations and namespaces in the manager's cache one by one: an edit visits all of them, and a
// list copies each. Results are shared, and only read.
type caches struct {
	installations, namespaces held
	observations              observations
}

// held is one kind in the manager's cache.
type held interface {
	HasSynced() bool
	GetIndexer() toolscache.Indexer
}

func cachesOf(mgr ctrl.Manager) (caches, error) {
	var found caches
	for into, object := range map[*held]client.Object{
		&found.installations: &v1.AddonInstallation{}, &found.namespaces: loop.Metadata(namespaceKind),
	} {
		informer, err := mgr.GetCache().GetInformer(context.Background(), object, cache.BlockUntilSynced(false))
		if err != nil {
			return caches{}, fmt.Errorf("getting the cache of %T: %w", object, err)
		}
		known, hasIndex := informer.(held)
		if !hasIndex {
			return caches{}, fmt.Errorf("the cache of %T, a %T, has no index", object, informer)
		}
		*into = known
	}
	return found, nil
}

// notSyncedError reports that a cache is not filled yet.
type notSyncedError struct{ of string }

func (e *notSyncedError) Error() string { return "the cache of " + e.of + " is not filled yet" }

// in returns the installations in a cluster that was found, or requested.
func (c *caches) in(of target.Ref) (byName, error) {
	if !c.installations.HasSynced() {
		return nil, &notSyncedError{"installations"}
	}
	cached, err := c.installations.GetIndexer().ByIndex(toolscache.NamespaceIndex, of.Namespace)
	if err != nil {
		return nil, fmt.Errorf("listing the installations of namespace %q: %w", of.Namespace, err)
	}
	found := make(byName, len(cached))
	for _, object := range cached {
		if one, isInstallation := object.(*v1.AddonInstallation); isInstallation && of.Has(one) {
			found[one.Name] = c.observations.of(one)
		}
	}
	return found, nil
}

// all returns all installations, by the cluster that they name. Of tens of thousands, this finds each cluster's
// faster than one request per cluster. The maps are the caches' own: they are read only under the mutex.
func (c *caches) all() (map[cluster.Key]byName, error) {
	if !c.installations.HasSynced() {
		return nil, &notSyncedError{"installations"}
	}
	listed := c.installations.GetIndexer().List()
	for _, object := range listed {
		if one, isInstallation := object.(*v1.AddonInstallation); isInstallation {
			c.observations.of(one)
		}
	}
	if len(c.observations.byObject) != len(listed) { // some of their events have not arrived yet
		c.observations.forgetAllBut(listed)
	}
	return c.observations.byCluster, nil
}

// elsewhere returns a function that reports whether an installation of another cluster of the namespace has a name.
func (c *caches) elsewhere(of target.Ref) func(name string) bool {
	return func(name string) bool {
		object, isThere, err := c.installations.GetIndexer().GetByKey(of.Namespace + "/" + name)
		one, isInstallation := object.(*v1.AddonInstallation)
		return err == nil && isThere && isInstallation && !of.Has(one)
	}
}

// isOpen reports whether a namespace can be written to: it exists, and is not being deleted.
func (c *caches) isOpen(namespace string) (bool, error) {
	if !c.namespaces.HasSynced() {
		return false, &notSyncedError{"namespaces"}
	}
	object, isThere, err := c.namespaces.GetIndexer().GetByKey(namespace)
	if err != nil || !isThere {
		return false, err
	}
	one, isObject := object.(metav1.Object)
	return isObject && one.GetDeletionTimestamp().IsZero(), nil
}
