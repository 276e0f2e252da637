package addonset

import (
	"slices"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/rollout"
	"github.com/trellis-addons/trellis/pkg/waves"
)

// counts says whether a cluster is one of the set's: it has something there, or wants to.
func (p *plan) counts() bool { return p.presence != waves.Absent || p.isEarly || len(p.mine) > 0 }

// repairs says whether others changed what the set wrote.
func (p *plan) repairs() bool {
	return slices.ContainsFunc(p.steps, func(one step) bool { return one.repair })
}

// factsOf a cluster, by what the set wants of it.
func (p *plan) factsOf(in *place) waves.Facts {
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
			facts.Removals = append(facts.Removals, rollout.Removal{
				ID: string(one.live.UID), HasVolumes: applied != nil && applied.VolumeClaims > 0,
			})
		}
	}
	return facts
}
