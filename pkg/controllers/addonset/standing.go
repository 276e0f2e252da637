package addonset

import (
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/rollout"
	"github.com/trellis-addons/trellis/pkg/waves"
)

// standing is how a cluster stands in a set's rollout.
type standing struct {
	waves.Standing
	// repairs says that others changed what the set wrote.
	repairs bool
	// has counts the installations that the set has there.
	has int
}

// standingOf a cluster, by what the set wants of it. False: the set has nothing there, and wants
// nothing.
func standingOf(p *plan, in *place, along waves.Course) (standing, bool) {
	if p.presence == waves.Absent && len(p.mine) == 0 {
		return standing{}, false
	}
	facts := waves.Facts{
		Presence: p.presence, Labels: in.labels, Created: in.created, Away: in.away, Mine: p.mine, Blocked: p.blocked, AtOnce: p.unfit,
	}
	result := standing{has: len(p.mine)}
	for _, one := range p.steps {
		if one.repair {
			result.repairs = true
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
	result.Standing = waves.StandingOf(facts, along)
	return result, true
}
