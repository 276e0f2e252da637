package addonset

import (
	"cmp"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/installation"
	"github.com/trellis-addons/trellis/pkg/rollout"
	"github.com/trellis-addons/trellis/pkg/waves"
)

// standing is how a cluster stands in a set's rollout.
type standing struct {
	rollout.Standing
	// atOnce says that it is written without a place.
	atOnce bool
	// repairs says that others changed what the set wrote.
	repairs bool
	// onlyRemovals says that nothing else is to be written.
	onlyRemovals bool
	// removals are the installations that are to go and are not deleted yet; has counts those that
	// the set has there.
	removals []rollout.Removal
	has      int
	// next is when time alone may change it; zero: never.
	next time.Time
}

// course is what the state of a cluster depends on besides the plan.
type course struct {
	strategy  rollout.Strategy
	startedAt time.Time
	now       time.Time
	// waiting are removals that nobody has approved, by UID.
	waiting map[string]bool
}

// standingOf a cluster. False: the set has nothing there, and wants nothing.
func standingOf(p *plan, in *place, along course) (standing, bool) {
	if p.presence == absent && len(p.mine) == 0 {
		return standing{}, false
	}
	group := along.strategy.GroupOf(in.labels)
	pace := along.strategy.Groups[group]
	found := movesOf(p, installation.Pace{Soak: pace.Soak, Deadline: pace.ProgressDeadline}, along)
	result := standing{has: len(p.mine), next: found.next}
	result.Group, result.Sick, result.Blocked = group, found.sick, len(p.blocked) > 0
	result.Changes = changesOf(p)
	held := result.addRemovals(p, along.waiting)
	found.behind, found.held = p.changes(), held
	found.away = cmp.Or(in.away, found.unreachable)
	found.isNew = p.presence != absent && in.created.After(along.startedAt)
	switch {
	case result.isException(p, &found):
	case found.underway != nil:
		result.State, result.Again = v1.ClusterMoving, found.behind && !held
	case found.behind:
		result.State, result.Held = v1.ClusterBehind, held
		if p.unfit {
			result.Group, result.atOnce = rollout.NoGroup, true
		}
	case len(p.mine) == 0 && len(p.blocked) > 0:
		result.State = v1.ClusterBlocked
	case found.isNew:
		result.State, result.Group = v1.ClusterNew, rollout.NoGroup
	default:
		result.State = v1.ClusterCurrent
	}
	if result.Blocked && result.Trouble.Reason == "" {
		result.Trouble = p.blocked[0]
	}
	return result, true
}

// addRemovals notes what is to go. Held: nothing else is to be written, and nobody has approved it.
func (s *standing) addRemovals(p *plan, waiting map[string]bool) (held bool) {
	s.onlyRemovals, held = len(p.steps) > 0, len(p.steps) > 0
	for _, one := range p.steps {
		s.repairs = s.repairs || one.repair
		if one.kind != v1.ChangeRemove {
			s.onlyRemovals, held = false, false
			continue
		}
		applied := one.live.Status.LastApplied
		s.removals = append(s.removals, rollout.Removal{
			ID: string(one.live.UID), HasVolumes: applied != nil && applied.VolumeClaims > 0,
		})
		held = held && waiting[string(one.live.UID)]
	}
	return held
}

// isException says whether a cluster is new and not done, failed or away: then its state is set.
func (s *standing) isException(p *plan, found *moves) bool {
	isDone := !found.behind && found.underway == nil && found.failed == nil
	switch {
	case found.isNew && found.away == "" && !isDone:
		s.State, s.Group, s.atOnce = v1.ClusterNew, rollout.NoGroup, found.behind && !found.held
	case found.failed != nil && (p.presence != absent || !found.failed.DeletionTimestamp.IsZero()):
		s.State = v1.ClusterFailed
		if found.isSick() {
			s.State = v1.ClusterSick
		}
		s.Trouble = waves.TroubleOf(found.failed, found.failedState)
	case found.behind && found.away != "" || p.presence == unknown:
		s.State = v1.ClusterAway
		s.Trouble = rollout.Trouble{
			Reason: cmp.Or(found.away, v1.ReasonClusterNotReady), Message: "nothing is written to the cluster until it can be watched",
		}
	default:
		return false
	}
	return true
}

// isSick says whether what failed was not Ready before its move, or was stopped by people.
func (m *moves) isSick() bool { return installation.WasSick(m.failed) || m.failedState.Paused }

// moves is what the installations of a set in a cluster say of their last moves.
type moves struct {
	// failed and underway are the first installations that are so; nil: none.
	failed, underway *v1.AddonInstallation
	failedState      installation.State
	// unreachable is why the user cluster can't be written to, by its installations.
	unreachable string
	// sick says that something was not Ready.
	sick bool
	next time.Time
	// behind says that something is to be written, held that all of it waits for approval, away why it
	// can't be; isNew that the cluster is younger than the revision.
	behind, held, isNew bool
	away                string
}

func movesOf(p *plan, pace installation.Pace, along course) moves {
	var found moves
	for _, live := range p.mine {
		state := installation.StateOf(live, pace, along.now)
		found.sick = found.sick || !state.Ready
		switch {
		case found.unreachable != "":
		case state.Paused:
			found.unreachable = v1.ReasonPaused
		case state.Unreachable:
			found.unreachable = state.Reason
		}
		moved := state.Moved
		if !live.DeletionTimestamp.IsZero() && live.DeletionTimestamp.After(moved) {
			moved = live.DeletionTimestamp.Time
		}
		if !moved.IsZero() {
			found.add(live, state, window{moved: moved, over: moved.Add(pace.Deadline + pace.Soak)}, along)
		}
	}
	return found
}

// window is when an installation was moved, and when its move is over whatever comes.
type window struct{ moved, over time.Time }

// add what one installation says of its last move. A failure counts in the revision in which it was
// moved; one of an earlier revision may still be under way.
func (m *moves) add(live *v1.AddonInstallation, state installation.State, of window, along course) {
	isRecent := !of.moved.Before(along.startedAt)
	switch {
	case state.Phase == installation.Failed && isRecent:
		if m.failed == nil || installation.WasSick(m.failed) && !installation.WasSick(live) {
			m.failed, m.failedState = live, state
		}
	case state.Phase == installation.Underway && (isRecent || along.now.Before(of.over)):
		m.underway = live
		m.next = waves.Sooner(m.next, state.Next)
		if !isRecent {
			m.next = waves.Sooner(m.next, of.over)
		}
	}
}

// changesOf a plan, for status.pending.
func changesOf(p *plan) []rollout.Change {
	var changes []rollout.Change
	for _, one := range p.steps {
		if !one.repair {
			changes = append(changes, rollout.Change{Item: one.item, Kind: one.kind, From: one.from, To: one.to})
		}
	}
	for _, one := range p.blocked {
		changes = append(changes, rollout.Change{Item: one.Item, Kind: v1.ChangeBlocked})
	}
	return changes
}
