package standins

import (
	"context"
	"errors"

	"github.com/go-logr/logr"

	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/pkg/controllers/addonset"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
)

// setUp puts the set controller, and where upgrades are to wait the others, into a manager, as the program of a seed has them.
func setUp(ctx context.Context, made wiring.Seed, work Assignment) error {
	marks := mergedcatalogue.New(logr.Discard())
	if work.Platform != "" {
		if err := errors.Join(marks.Read(ctx, made.GetAPIReader(), work.Platform), marks.Follow(ctx, made.GetCache())); err != nil {
			return err
		}
	}
	if work.Upgrades != nil {
		return setUpUpgrades(made, marks, work)
	}
	return addonset.New(wiring.AddonSet(made, marks, addonset.Options{CatalogueNamespace: work.Catalogue})).SetupWithManager(made)
}
