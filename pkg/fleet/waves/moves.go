package waves

import (
	"fmt"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/times"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
)

// moves sums up the last moves of a set's installations in a cluster.
type moves struct {
	// failed, underway and overdue are installations in that state; nil if there is none.
	failed, underway, overdue *v1.AddonInstallation
	failedState, overdueState installation.State
	// lost is one that was paused or cut off, and was not in time or is no longer Ready; nil if there is none.
	lost      *v1.AddonInstallation
	lostState installation.State
	// unreachable is the reason why the user cluster can't be written to, according to its installations.
	unreachable string
	// sick says that an installation was not Ready, earlier that one was moved before the revision.
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

// latestMove is the latest possible time of an installation's move.
func latestMove(said *installation.Report, state installation.State) time.Time {
	if said.IsGoing {
		return state.Moved.Add(time.Second) // the API truncates the time of a deletion to seconds
	}
	return state.Moved
}

// isAhead reports whether the clock of a move's stamp was ahead, in a revision that has begun.
func (c *Course) isAhead(moved time.Time) bool {
	return times.IsAhead(moved, c.Now) && !c.StartedAt.After(c.Now)
}

// add adds the last move of one installation. Its result counts in the revision in which it was moved. A move of an
// earlier revision may still be under way, unless the installation is Ready past its deadline, even if the soak time
// is longer by now. A move in the future was stamped by a wrong clock, and would be under way until then.
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

// fail notes one that is past its deadline or was rolled back. The owner of a cluster may pause it and cut it off:
// that is no evidence about the revision. It lifts no halt.
func (m *moves) fail(live *v1.AddonInstallation, state installation.State, isHalted bool) {
	switch {
	case state.Paused || state.Unreachable && !isHalted:
		m.lost, m.lostState = live, state
	case m.failed == nil || weight(live, state) > weight(m.failed, m.failedState):
		m.failed, m.failedState = live, state
	}
}

// weight is how strongly a failure counts against the revision: most if the cluster was Ready before and has no cause of its own.
func weight(live *v1.AddonInstallation, state installation.State) int {
	switch {
	case installation.WasSick(live):
		return 0
	case state.Cause != "":
		return 1
	}
	return 2 // stronger than all others
}

// isSick reports whether the failed installation was not Ready before its move.
func (m *moves) isSick() bool { return installation.WasSick(m.failed) }

// lostTo is about an installation or cluster that its owner paused or cut off.
func lostTo(live *v1.AddonInstallation, state installation.State) rollout.Trouble {
	trouble := troubleOf(live, state)
	trouble.Message = "it was paused or unreachable since its move, and the rollout no longer waits for it: " + trouble.Message
	return trouble
}

// troubleOf is the trouble of an installation, with its own message.
func troubleOf(live *v1.AddonInstallation, state installation.State) rollout.Trouble {
	trouble := rollout.Trouble{Item: live.Name, Reason: state.Reason, Message: state.Message}
	switch {
	case state.Ready:
		trouble.Message = "it is Ready now, but was not Ready in time"
	case trouble.Reason == "":
		trouble.Reason, trouble.Message = v1.ReasonProgressing, "its status does not reflect the last write yet"
	case trouble.Message == "":
		trouble.Message = fmt.Sprintf("its condition Ready has reason %s", state.Reason)
	}
	return trouble
}

// overdueOf is the reason why an installation past its deadline is neither current nor failed.
func overdueOf(live *v1.AddonInstallation, state installation.State) rollout.Trouble {
	trouble := troubleOf(live, state)
	if state.Phase == installation.Underway {
		trouble.Message = "the clock was ahead when it was moved, so it is unknown how long it has been Ready; the rollout does not wait for it"
		return trouble
	}
	if state.Ready {
		trouble.Message = "it is Ready, but was changed again before the soak time ended"
	}
	trouble.Message = "its move took too long, and the rollout does not wait for it: " + trouble.Message
	return trouble
}
