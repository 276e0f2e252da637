package addoninstallation

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fairqueue"
	"github.com/trellis-addons/trellis/pkg/target"
)

// clusters knows by name in which cluster installations are, for the turns that they take: a
// namespace is one tenant, which has several clusters outside of KKP's. The zero value knows none.
type clusters struct{ byName sync.Map }

// note says in which cluster an installation is, once that was found.
func (c *clusters) note(installation *kubermaticv1.AddonInstallation, found target.Ref) {
	name := found.Name
	if found.IsKKP() {
		name = ""
	}
	c.byName.Store(client.ObjectKeyFromObject(installation), name)
}

// expect says in which cluster an installation asks to be, where nothing was found yet.
func (c *clusters) expect(installation *kubermaticv1.AddonInstallation) {
	c.byName.LoadOrStore(client.ObjectKeyFromObject(installation), target.InstalledIn(installation).Name)
}

// heard lets all events pass, and expects what they are about.
func (c *clusters) heard() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(object client.Object) bool {
		if installation, ok := object.(*kubermaticv1.AddonInstallation); ok {
			c.expect(installation)
		}
		return true
	})
}

func (c *clusters) forget(installation types.NamespacedName) { c.byName.Delete(installation) }

// of says whose turn an installation takes.
func (c *clusters) of(installation types.NamespacedName) fairqueue.Cluster {
	name, _ := c.byName.Load(installation)
	cluster, _ := name.(string)
	return fairqueue.Cluster{Tenant: installation.Namespace, Name: cluster}
}
