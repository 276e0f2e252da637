package waves

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/installation"
	"github.com/trellis-addons/trellis/pkg/rollout"
)

// Facts are what is known of a cluster and a set.
type Facts struct {
	// Labels and facts of the cluster.
	Labels  labels.Set
	Created time.Time
	// Away is why the cluster can't be written to; empty as a rule.
	Away string
	// Mine are the installations that the set looks after there.
	Mine []*v1.AddonInstallation
	// Changes are those to be written as a move.
	Changes []rollout.Change
	// Blocked are items that can't be carried out there.
	Blocked []rollout.Trouble
	// AtOnce says that it is to be written without a place.
	AtOnce bool
}

// Course is what the state of a cluster depends on besides its facts.
type Course struct {
	Strategy  rollout.Strategy
	StartedAt time.Time
	Now       time.Time
}

// Standing is how a cluster stands in a set's rollout.
type Standing struct {
	rollout.Standing
	// AtOnce says that it is written without a place.
	AtOnce bool
	// Next is when time alone may change it; zero: never.
	Next time.Time
}

// StandingOf a cluster.
func StandingOf(found Facts, along Course) Standing {
	group := along.Strategy.GroupOf(found.Labels)
	pace := along.Strategy.Groups[group]
	moved := movesOf(found.Mine, installation.Pace{Soak: pace.Soak, Deadline: pace.ProgressDeadline}, along)
	away := found.Away
	if away == "" {
		away = moved.unreachable
	}
	result := Standing{Next: moved.next}
	result.Group, result.Sick, result.Blocked, result.Changes = group, moved.sick, len(found.Blocked) > 0, changesOf(found)
	isBehind := len(found.Changes) > 0
	if !result.isAtOnce(found, along, moved, away) {
		result.inWaves(moved, isBehind, away)
	}
	if result.Blocked && result.Trouble.Reason == "" {
		result.Trouble = found.Blocked[0]
	}
	return result
}

// isAtOnce says whether a cluster moves at once, in no group: a new one, and one whose applied
// version no longer fits.
func (s *Standing) isAtOnce(found Facts, along Course, moved moves, away string) bool {
	isBehind, isReachable := len(found.Changes) > 0, away == ""
	isSettled := !isBehind && moved.underway == nil && moved.failed == nil
	switch {
	case found.Created.After(along.StartedAt) && (isSettled || isReachable):
		s.State, s.Group, s.AtOnce = v1.ClusterNew, rollout.NoGroup, isBehind
	case isBehind && found.AtOnce && isReachable:
		s.State, s.Group, s.AtOnce = v1.ClusterBehind, rollout.NoGroup, true
	default:
		return false
	}
	return true
}

// inWaves is how a cluster stands in its group.
func (s *Standing) inWaves(moved moves, isBehind bool, away string) {
	switch {
	case moved.failed != nil:
		s.State, s.Trouble = v1.ClusterFailed, TroubleOf(moved.failed, moved.failedState)
		if installation.WasSick(moved.failed) || moved.failedState.Paused { // people stopped it
			s.State = v1.ClusterSick
		}
	case isBehind && away != "":
		s.State = v1.ClusterAway
		s.Trouble = rollout.Trouble{Reason: away, Message: "nothing is written to the cluster until it can be watched"}
	case moved.underway != nil:
		s.State, s.Again = v1.ClusterMoving, isBehind
	case isBehind:
		s.State = v1.ClusterBehind
	default:
		s.State = v1.ClusterCurrent
	}
}

func changesOf(found Facts) []rollout.Change {
	changes := found.Changes
	for _, one := range found.Blocked {
		changes = append(slices.Clip(changes), rollout.Change{Item: one.Item, Kind: v1.ChangeBlocked})
	}
	return changes
}

// moves is what installations say of their last moves.
type moves struct {
	// failed and underway are the first that are so; nil: none.
	failed, underway *v1.AddonInstallation
	failedState      installation.State
	// unreachable is why the user cluster can't be written to.
	unreachable string
	sick        bool
	next        time.Time
}

func movesOf(mine []*v1.AddonInstallation, pace installation.Pace, along Course) moves {
	var found moves
	for _, live := range mine {
		state := installation.StateOf(live, pace, along.Now)
		found.sick = found.sick || !state.Ready
		switch {
		case found.unreachable != "":
		case state.Paused:
			found.unreachable = v1.ReasonPaused
		case state.Unreachable:
			found.unreachable = state.Reason
		}
		if !state.Moved.IsZero() {
			found.add(live, state, state.Moved.Add(pace.Deadline+pace.Soak), along)
		}
	}
	return found
}

// add what one installation says of its last move, which is over at that time whatever comes. A
// failure counts in the revision in which it was moved; one of an earlier revision may still be
// under way.
func (m *moves) add(live *v1.AddonInstallation, state installation.State, over time.Time, along Course) {
	isRecent := !state.Moved.Before(along.StartedAt)
	switch {
	case state.Phase == installation.Failed && isRecent:
		if m.failed == nil || installation.WasSick(m.failed) && !installation.WasSick(live) {
			m.failed, m.failedState = live, state
		}
	case state.Phase == installation.Underway && (isRecent || along.Now.Before(over)):
		m.underway = live
		m.next = Sooner(m.next, state.Next)
		if !isRecent {
			m.next = Sooner(m.next, over)
		}
	}
}

// Sooner of two times; zero is never.
func Sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// TroubleOf an installation, in its own words.
func TroubleOf(live *v1.AddonInstallation, state installation.State) rollout.Trouble {
	trouble := rollout.Trouble{Item: live.Name, Reason: state.Reason, Message: state.Message}
	switch {
	case state.Ready:
		trouble.Message = "it is Ready and was not in time"
	case trouble.Reason == "":
		trouble.Reason, trouble.Message = v1.ReasonProgressing, "it says nothing of what was written last"
	case trouble.Message == "":
		trouble.Message = fmt.Sprintf("its condition Ready has reason %s", state.Reason)
	}
	return trouble
}
