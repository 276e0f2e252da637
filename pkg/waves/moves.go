package waves

import (
	"fmt"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/installation"
	"github.com/trellis-addons/trellis/pkg/rollout"
	"github.com/trellis-addons/trellis/pkg/times"
)

// moves is what the installations of a set in a cluster say of their last moves.
type moves struct {
	// failed, underway and overdue are installations that are so; nil: none.
	failed, underway, overdue *v1.AddonInstallation
	failedState, overdueState installation.State
	// lost is one that was paused or cut off, and not in time or not Ready any more; nil: none.
	lost      *v1.AddonInstallation
	lostState installation.State
	// unreachable is why the user cluster can't be written to, by its installations.
	unreachable string
	// sick says that something was not Ready, earlier that something was moved before the revision.
	sick, earlier bool
	next          time.Time
}

func movesOf(mine []*installation.Report, pace installation.Pace, along Course) moves {
	var found moves
	for _, said := range mine {
		state := said.State(pace, along.Now)
		found.sick = found.sick || !state.Ready
		switch {
		case found.unreachable != "":
		case state.Paused:
			found.unreachable = v1.ReasonPaused
		case state.Unreachable:
			found.unreachable = state.Reason
		}
		if !state.Moved.IsZero() {
			found.add(said, state, pace.Deadline, along)
		}
	}
	return found
}

// latestMove is when an installation was moved, at the latest.
func latestMove(said *installation.Report, state installation.State) time.Time {
	if said.IsGoing {
		return state.Moved.Add(time.Second) // the API cuts the time of a deletion to the second
	}
	return state.Moved
}

// isAhead says whether a move was stamped by a clock that was ahead, in a revision that has begun.
func (c *Course) isAhead(moved time.Time) bool {
	return times.IsAhead(moved, c.Now) && !c.StartedAt.After(c.Now)
}

// add what one installation says of its last move. What came of it counts in the revision in which
// it was moved. One of an earlier revision may still be under way; Ready past its deadline it is not,
// also where a longer soak is asked for by now. A move from a time to come was stamped by a clock
// that was wrong, and would be under way until then.
func (m *moves) add(said *installation.Report, state installation.State, deadline time.Duration, along Course) {
	live, moved := said.Live, latestMove(said, state)
	isRecent := !moved.Before(along.StartedAt)
	m.earlier = m.earlier || !isRecent
	switch state.Phase {
	case installation.Failed:
		if isRecent {
			m.fail(live, state, along.Halted)
		}
	case installation.Overdue:
		if isRecent {
			m.overdue, m.overdueState = live, state
			m.next = Sooner(m.next, state.Next)
		}
	case installation.Underway:
		if state.Ready && !isRecent && !moved.Add(deadline).After(along.Now) {
			return
		}
		m.next = Sooner(m.next, state.Next)
		if along.isAhead(moved) {
			m.overdue, m.overdueState = live, state
			return
		}
		m.underway = live
	case installation.Settled:
	}
}

// fail notes one that is past its deadline or was rolled back. Who owns a cluster may pause it and cut it
// off: that shows nothing of the revision. It lifts no halt.
func (m *moves) fail(live *v1.AddonInstallation, state installation.State, isHalted bool) {
	switch {
	case state.Paused || state.Unreachable && !isHalted:
		m.lost, m.lostState = live, state
	case m.failed == nil || weight(live, state) > weight(m.failed, m.failedState):
		m.failed, m.failedState = live, state
	}
}

// weight says how much a failure says against the revision: most, if the cluster was Ready before and has no reason of its own.
func weight(live *v1.AddonInstallation, state installation.State) int {
	switch {
	case installation.WasSick(live):
		return 0
	case state.Cause != "":
		return 1
	}
	return 2 // more than all others
}

// isSick says whether what failed was not Ready before its move.
func (m *moves) isSick() bool { return installation.WasSick(m.failed) }

// lostTo an owner who paused the installation or the cluster, or cut it off.
func lostTo(live *v1.AddonInstallation, state installation.State) rollout.Trouble {
	trouble := troubleOf(live, state)
	trouble.Message = "it was paused or cut off since its move, and the rollout no longer waits for it: " + trouble.Message
	return trouble
}

// troubleOf an installation, in its own words.
func troubleOf(live *v1.AddonInstallation, state installation.State) rollout.Trouble {
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

// overdueOf an installation whose time is over says why it is neither current nor failed.
func overdueOf(live *v1.AddonInstallation, state installation.State) rollout.Trouble {
	trouble := troubleOf(live, state)
	if state.Phase == installation.Underway {
		trouble.Message = "it was moved by a clock that was ahead, so nobody can tell for how long it has been Ready, and nobody waits for it"
		return trouble
	}
	if state.Ready {
		trouble.Message = "it is Ready, and was changed again before it was so for the soak time"
	}
	trouble.Message = "its time is over, and nobody waits for it: " + trouble.Message
	return trouble
}
