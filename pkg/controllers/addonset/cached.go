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
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/target"
)

// caches are what the manager's cache has of installations and namespaces, looked up one by one: an
// edit walks over all of them, and a list copies each. What is found is shared, and only read.
type caches struct {
	installations, namespaces held
	sights                    sights
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

// notSyncedError says that a cache does not have yet all that there is.
type notSyncedError struct{ of string }

func (e *notSyncedError) Error() string { return "the cache of " + e.of + " is not filled yet" }

// in a cluster that was found, or is asked for.
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
			found[one.Name] = c.sights.of(one)
		}
	}
	return found, nil
}

// all installations, by the cluster that they ask for. Of tens of thousands, each cluster's are found
// sooner so than by asking for one after the other. The maps are the caches' own: they are read under
// the mutex only.
func (c *caches) all() (map[cluster.Key]byName, error) {
	if !c.installations.HasSynced() {
		return nil, &notSyncedError{"installations"}
	}
	listed := c.installations.GetIndexer().List()
	for _, object := range listed {
		if one, isInstallation := object.(*v1.AddonInstallation); isInstallation {
			c.sights.of(one)
		}
	}
	if len(c.sights.byObject) != len(listed) { // the events of some are still to come
		c.sights.forgetAllBut(listed)
	}
	return c.sights.byCluster, nil
}

// elsewhere says of names in a cluster's namespace whether an installation of another cluster has them.
func (c *caches) elsewhere(of target.Ref) func(name string) bool {
	return func(name string) bool {
		object, isThere, err := c.installations.GetIndexer().GetByKey(of.Namespace + "/" + name)
		one, isInstallation := object.(*v1.AddonInstallation)
		return err == nil && isThere && isInstallation && !of.Has(one)
	}
}

// isOpen says whether a namespace can be written to: it is there, and is not being deleted.
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
