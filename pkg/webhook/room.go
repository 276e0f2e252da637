package webhook

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// Room counts the Custom catalogues that the managers hold in their caches.
type Room struct {
	// Cached is the master's cache of catalogues.
	Cached client.Reader

	scale catalogue.Scale
}

// check refuses what makes Custom catalogues larger than they may be, in the namespace of the platform or in another one, whatever else an
// update is about, and while a catalogue is being deleted. If the others can't be read, it refuses nothing: the distributor leaves out what
// is too much.
func (r *Room) check(ctx context.Context, found change[v1.AddonCatalogue]) error {
	if r == nil || found.after.Spec.Type == v1.CatalogueCore {
		return nil
	}
	var before catalogue.Weight
	if found.before != nil && found.before.Spec.Type != v1.CatalogueCore {
		before = catalogue.WeighObject(found.before)
	}
	others := func() catalogue.Weight {
		var all v1.AddonCatalogueList
		if err := r.Cached.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
			return catalogue.Weight{}
		}
		return r.scale.Others(all.Items, found.after.Namespace, found.after.Name)
	}
	return catalogue.CheckRoom(found.after.Name, others, before, catalogue.WeighObject(found.after))
}
