package target

import "slices"

// Ahead are the versions that a pending upgrade will bring, in their order, whether it waits or not: first the one
// that the control plane is upgraded to now. None if no upgrade is pending.
func (d Description) Ahead() []string {
	of := d.Upgrade
	if of == nil || !of.IsPending() {
		return nil
	}
	if !of.hasBegun() || len(of.Plan) > 0 && of.Plan[0] == of.Asked {
		return of.Plan
	}
	return append([]string{of.Asked}, of.Plan...)
}

// Waits says whether the control plane waits before an upgrade.
func (d Description) Waits() bool {
	of := d.Upgrade
	return of != nil && of.Hook && of.IsPending() && !of.hasBegun()
}

// hasBegun says whether the control plane is requested to have another version, and does not have it yet.
func (u *Upgrade) hasBegun() bool {
	return u.Asked != "" && slices.ContainsFunc(u.Versions, func(version string) bool { return version != u.Asked })
}
