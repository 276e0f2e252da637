package addonset

import (
	"slices"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
	"github.com/trellis-addons/trellis/pkg/fleet/waves"
)

// counts reports whether a cluster is one of the set's: the set has an installation there, or should have one.
func (p *plan) counts() bool { return p.presence != waves.Absent || p.isEarly || len(p.mine) > 0 }

// repairs reports whether other clients changed fields that the set wrote.
func (p *plan) repairs() bool {
	return slices.ContainsFunc(p.steps, func(one step) bool { return one.repair })
}

// keeps are the items that the set has, or should have, in the cluster. If it is unknown whether the set is for the
// cluster, its installations there stay.
func (p *plan) keeps(of *set) []string {
	if p.presence == waves.Present || p.isEarly || p.presence == waves.Unknown && len(p.mine) > 0 {
		return without(of.names, p.optedOut)
	}
	return nil
}

// factsOf are the facts of a cluster, by the set's plan. The policy decides about unwanted installations.
func (p *plan) factsOf(in *place, policy v1.RemovalPolicy) waves.Facts {
	facts := waves.Facts{
		Presence: p.presence, Labels: in.labels, Created: in.created, Away: in.away, Mine: p.mine, Blocked: p.blocked,
		AtOnce: p.unfit || p.isEarly,
	}
	if p.isEarly {
		facts.Presence = waves.Present
	}
	if len(p.steps) > 0 {
		facts.Changes = make([]rollout.Change, 0, len(p.steps))
	}
	for i := range p.steps {
		one := &p.steps[i]
		if one.repair {
			continue
		}
		facts.Changes = append(facts.Changes, rollout.Change{Item: one.item, Kind: one.kind, From: one.from, To: one.to})
		if one.kind == v1.ChangeRemove {
			applied := one.live.Status.LastApplied
			removal := rollout.Removal{ID: string(one.live.UID), HasVolumes: applied != nil && applied.VolumeClaims > 0}
			if policy != v1.RemovalRelease { // with Release nothing is removed
				removal.Item = one.item
			}
			facts.Removals = append(facts.Removals, removal)
		}
	}
	return facts
}
