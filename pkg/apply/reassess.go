package apply

import "context"

// Reassess is Assess for an installation that an earlier look found unhealthy. It reads what was not healthy then, and
// everything once more where nothing of that is left, so that what it calls healthy was all healthy at one time. It is for looks
// that follow each other closely: what was healthy before is not seen to fail until then.
func Reassess(ctx context.Context, target Target, owner Owner, inventory Inventory, before Health) (Health, error) {
	rest := inventory.only(before.unhealthy)
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
	health.Finished = append(append([]Key{}, before.Finished...), health.Finished...)
	return health, nil
}

// only are the entries with these keys.
func (i Inventory) only(keys []Key) (some Inventory) {
	wanted := make(map[Key]bool, len(keys))
	for _, key := range keys {
		wanted[key] = true
	}
	for _, entry := range i {
		if wanted[entry.Key] {
			some = append(some, entry)
		}
	}
	return some
}
