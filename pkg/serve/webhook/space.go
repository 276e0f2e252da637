package webhook

import (
	"context"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// checkSpace refuses an edit by which Custom catalogues exceed their limit, in the namespace of the platform or in
// another one: the managers have all of them in their caches. It checks each update, also of metadata and of objects
// being deleted. If the others can't be read, it refuses nothing: the distributor excludes the excess.
func (c *Catalogues) checkSpace(ctx context.Context, found change[v1.AddonCatalogue]) error {
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
	return catalogue.CheckSpace(found.after.Name, others, before, catalogue.WeighObject(found.after))
}
