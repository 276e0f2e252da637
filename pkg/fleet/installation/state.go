package installation

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Phase is the result of an installation's last move.
type Phase string

// Phases.
const (
	// Settled: it has been Ready for the soak time since its last move.
	Settled Phase = "Settled"
	// Underway: it is not settled, and may still be in time.
	Underway Phase = "Underway"
	// Failed: it was rolled back, or is not Ready past the deadline, also if it is unreachable.
	Failed Phase = "Failed"
	// Overdue: it is none of these, and the time of its move is over: it waits, or changes repeatedly. It may settle, or
	// fail, later.
	Overdue Phase = "Overdue"
)

// Pace is how long a move may take, and how long the installation must be Ready.
type Pace struct {
	Soak, Deadline time.Duration
}

// State is the state of an installation.
type State struct {
	Phase Phase
	// Moved is when its controller last wrote it, or deleted it; zero if unknown.
	Moved time.Time
	// Unreachable says that its user cluster can't be written to, Paused that a user stopped it.
	Unreachable, Paused bool
	// Ready says that it is Ready at its present spec.
	Ready bool
	// Reason and Message are those of its condition Ready; empty before it has one.
	Reason, Message string
	// Cause is the reason why it is not Ready that may be the cluster's own, such as Unschedulable; empty if there is none.
	Cause string
	// Next is when time alone may change the phase; zero: never.
	Next time.Time
}

// Report has the facts about an installation, extracted once: its state follows from them, the pace and the time.
type Report struct {
	// Live is the installation.
	Live *v1.AddonInstallation
	// IsGoing says that it is being deleted.
	IsGoing bool
	// said is the part of the state that does not depend on pace and time.
	said State
	// applied is when the user cluster was last changed, ready when condition Ready last changed; zero: never.
	applied, ready time.Time
	// hasGivenWay says that it was rolled back at its present generation; isOnce that it is reconciled only until it is
	// first Ready.
	hasGivenWay, isOnce bool
}

// ReportOf is the report of an installation.
func ReportOf(live *v1.AddonInstallation) Report {
	report := Report{
		Live: live, IsGoing: !live.DeletionTimestamp.IsZero(), applied: appliedAt(live), isOnce: live.Spec.ReconcileStrategy == v1.ReconcileOnce,
		said: State{Phase: Underway, Moved: MovedAt(live), Paused: live.Spec.Paused},
	}
	state := &report.said
	if report.IsGoing {
		state.Moved = latest(state.Moved, live.DeletionTimestamp.Time)
	}
	ready := meta.FindStatusCondition(live.Status.Conditions, v1.ConditionReady)
	if ready == nil {
		return report
	}
	isPresent := ready.ObservedGeneration == live.Generation
	report.ready, report.hasGivenWay = ready.LastTransitionTime.Time, ready.Reason == v1.ReasonRolledBack && isPresent
	state.Reason, state.Message, state.Cause = ready.Reason, ready.Message, live.Status.Cause
	state.Ready = ready.Status == metav1.ConditionTrue && isPresent && !report.IsGoing && hasItsValues(live)
	state.Unreachable = ready.Status == metav1.ConditionUnknown || unreachable[ready.Reason]
	state.Paused = state.Paused || ready.Reason == v1.ReasonPaused
	return report
}

// StateOf is the state of an installation, for a single use.
func StateOf(live *v1.AddonInstallation, pace Pace, now time.Time) State {
	report := ReportOf(live)
	return report.State(pace, now)
}

// State is the state of the installation. An old Ready proves nothing: soak counts from the latest of the last move,
// the last change of the user cluster and Ready's own transition. A deadline counts from the later of move and
// change; while the installation waits for others, or for approval, it does not fail. The cluster's users can
// influence all of that, so a move is under way for a limited time (ADR 65).
func (r *Report) State(pace Pace, now time.Time) State {
	state := r.phase(pace, now)
	if state.Phase != Underway || state.Moved.IsZero() {
		return state
	}
	over := r.over(pace)
	switch {
	case !over.After(now):
		state.Phase = Overdue
	case state.Next.IsZero() || over.Before(state.Next):
		state.Next = over
	}
	return state
}

// over is when a move is over in any case: after deadline and soak. The time until the last change of the user
// cluster, or of waiting, is added, but at most one deadline.
func (r *Report) over(pace Pace) time.Time {
	begins, most := latest(r.said.Moved, r.applied), r.said.Moved.Add(pace.Deadline)
	if waitsFor(r.said.Reason) || begins.After(most) {
		begins = most
	}
	return begins.Add(pace.Deadline + pace.Soak)
}

// phase is the state without a limit for moves under way.
func (r *Report) phase(pace Pace, now time.Time) State {
	state, changed := r.said, latest(r.said.Moved, r.applied)
	if state.Ready {
		if over := latest(changed, r.ready).Add(pace.Soak); r.isOnce || !over.After(now) {
			state.Phase = Settled
		} else {
			state.Next = over
		}
		return state
	}
	if r.hasGivenWay {
		state.Phase = Failed
		return state
	}
	if waitsFor(state.Reason) {
		return state
	}
	if over := changed.Add(pace.Deadline); over.After(now) {
		state.Next = over
	} else {
		state.Phase = Failed
	}
	return state
}

// IsReady says whether an installation is Ready at its present spec.
func IsReady(live *v1.AddonInstallation) bool {
	ready := meta.FindStatusCondition(live.Status.Conditions, v1.ConditionReady)
	return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == live.Generation
}

// MovedAt is when the controller that made an installation last wrote it; zero if unknown.
func MovedAt(live *v1.AddonInstallation) time.Time {
	at, err := time.Parse(time.RFC3339Nano, live.Annotations[v1.AnnotationMoved])
	if err != nil {
		return time.Time{}
	}
	return at
}

// WasSick says whether an installation was not Ready before its last write.
func WasSick(live *v1.AddonInstallation) bool { return live.Annotations[v1.AnnotationSick] == "true" }

// unreachable are the reasons of Ready for which the user cluster can't be written to.
var unreachable = map[string]bool{
	v1.ReasonClusterUnknown: true, v1.ReasonClusterNotReady: true, v1.ReasonClusterUnreachable: true,
	v1.ReasonClusterMisbehaves: true, v1.ReasonKubeconfigInvalid: true, v1.ReasonClusterSwapped: true, v1.ReasonClusterShared: true,
}

// waitsFor says whether a reason is that an installation waits for others of its cluster, or for approval.
func waitsFor(reason string) bool {
	return reason == v1.ReasonWaitingForOrder || reason == v1.ReasonPruneNeedsApproval
}

func appliedAt(live *v1.AddonInstallation) time.Time {
	if live.Status.LastApplied == nil || live.Status.LastApplied.Time == nil {
		return time.Time{}
	}
	return live.Status.LastApplied.Time.Time
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
