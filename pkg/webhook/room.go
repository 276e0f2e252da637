package webhook

import (
	"context"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// checkRoom refuses what makes Custom catalogues larger than they may be, in the namespace of the platform or in another one: the managers
// hold all in their caches. It looks at each update, also of metadata and of what is being deleted. If the others can't be read, it refuses
// nothing: the distributor leaves out what is too much.
func (c *Catalogues) checkRoom(ctx context.Context, found change[v1.AddonCatalogue]) error {
	if c.Master == nil || found.after.Spec.Type == v1.CatalogueCore {
		return nil
	}
	var before catalogue.Weight
	if found.before != nil && found.before.Spec.Type != v1.CatalogueCore {
		before = catalogue.WeighObject(found.before)
	}
	others := func() catalogue.Weight {
		var all v1.AddonCatalogueList
		if err := c.Master.List(ctx, &all); err != nil {
			return catalogue.Weight{}
		}
		return c.scale.Others(all.Items, found.after.Namespace, found.after.Name)
	}
	return catalogue.CheckRoom(found.after.Name, others, before, catalogue.WeighObject(found.after))
}
