package survey

import (
	"context"

	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/ownership"
)

// Reassess is Assess for an installation that an earlier look found unhealthy. It reads what was not healthy then, and
// everything once more where nothing of that is left, so that what it calls healthy was all healthy at one time. It is for looks
// that follow each other closely: what was healthy before is not seen to fail until then.
func Reassess(
	ctx context.Context, target calls.Target, owner ownership.Owner, inventory ownership.Inventory, before Health,
) (Health, error) {
	rest := inventory.Only(before.unhealthy)
	if len(rest) == 0 {
		return Assess(ctx, target, owner, inventory)
	}
	health, err := Assess(ctx, target, owner, rest)
	if err != nil {
		return Health{}, err
	}
	if health.Healthy == health.Total {
		return Assess(ctx, target, owner, inventory)
	}
	health.Total, health.Healthy = len(inventory), health.Healthy+len(inventory)-len(rest)
	health.Finished = append(append([]ownership.Key{}, before.Finished...), health.Finished...)
	return health, nil
}
