package addoninstallation

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/fairqueue"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// clusters maps installations to their cluster, for the fair queue: a namespace is one tenant, which has several
// clusters outside of KKP. The zero value is empty.
type clusters struct{ byName sync.Map }

// note records the cluster that was found for an installation.
func (c *clusters) note(installation *kubermaticv1.AddonInstallation, found target.Ref) {
	name := found.Name
	if found.IsKKP() {
		name = ""
	}
	c.byName.Store(client.ObjectKeyFromObject(installation), name)
}

// expect records the cluster that an installation requests, until one is found.
func (c *clusters) expect(installation *kubermaticv1.AddonInstallation) {
	c.byName.LoadOrStore(client.ObjectKeyFromObject(installation), target.InstalledIn(installation).Name)
}

// heard lets all events through, and calls expect for their installations.
func (c *clusters) heard() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(object client.Object) bool {
		if installation, ok := object.(*kubermaticv1.AddonInstallation); ok {
			c.expect(installation)
		}
		return true
	})
}

func (c *clusters) forget(installation types.NamespacedName) { c.byName.Delete(installation) }

// of is the cluster whose share of the queue an installation uses.
func (c *clusters) of(installation types.NamespacedName) fairqueue.Cluster {
	name, _ := c.byName.Load(installation)
	cluster, _ := name.(string)
	return fairqueue.Cluster{Tenant: installation.Namespace, Name: cluster}
}
