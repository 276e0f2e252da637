package target

// Upgrade is what a cluster says of its versions of Kubernetes, without their v, and what of it waits.
type Upgrade struct {
	// Wanted is the version that is asked for, Versions those of its control plane, oldest first.
	Wanted   string
	Versions []string
	// Asked is the version that its control plane was told to have; empty while unknown.
	Asked string
	// Plan are the versions that the control plane is yet to get, in their order.
	Plan []string
	// WorkersFirst says that the control plane waits for workers at the version that it has.
	WorkersFirst bool
	// Hook says that our hook is on, HasWorkers that there are workers that we may hold, Held that we
	// hold them, and Stray that our hold stands where it does not belong.
	Hook, HasWorkers, Held, Stray bool
}

// IsPending says whether the control plane does not have what is asked for.
func (u *Upgrade) IsPending() bool {
	for _, version := range u.Versions {
		if version != u.Wanted {
			return true
		}
	}
	return u.Asked != "" && u.Asked != u.Wanted
}

// Next are the versions that an upgrade which waits will bring, in their order; none where none waits
// for us.
func (d Description) Next() []string {
	if d.Upgrade == nil || !d.Upgrade.Hook && !d.Upgrade.Held || !d.Upgrade.IsPending() {
		return nil
	}
	return d.Upgrade.Plan
}
