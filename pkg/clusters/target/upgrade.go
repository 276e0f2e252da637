package target

// Upgrade has a cluster's versions of Kubernetes, without their v, and the state of its hold.
type Upgrade struct {
	// Wanted is the requested version, Versions those of its control plane, oldest first.
	Wanted   string
	Versions []string
	// Asked is the version that its control plane is requested to have; empty while unknown.
	Asked string
	// Plan are the versions that the control plane is yet to get, in their order.
	Plan []string
	// WorkersFirst says that the control plane waits for workers to reach its own version.
	WorkersFirst bool
	// Hook says that our hook is on, HasWorkers that there are workers that we may hold, Held that we hold them, and
	// Stray that our hold is on objects where it does not belong.
	Hook, HasWorkers, Held, Stray bool
}

// IsPending says whether the control plane does not have the requested version.
func (u *Upgrade) IsPending() bool {
	for _, version := range u.Versions {
		if version != u.Wanted {
			return true
		}
	}
	return u.Asked != "" && u.Asked != u.Wanted
}

// Next are the versions that a waiting upgrade will bring, in their order; none if no upgrade waits for add-ons.
func (d Description) Next() []string {
	if d.Upgrade == nil || !d.Upgrade.Hook && !d.Upgrade.Held || !d.Upgrade.IsPending() {
		return nil
	}
	return d.Upgrade.Plan
}
