package installation

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Phase says how an installation came out of its last move.
type Phase string

// Phases.
const (
	// Settled: it has been Ready for the soak time since its last move.
	Settled Phase = "Settled"
	// Underway: it is not settled, and may still be in time.
	Underway Phase = "Underway"
	// Failed: it was rolled back, or is not Ready past the deadline, unreachable ones too.
	Failed Phase = "Failed"
	// Overdue: it is none of these, and the time of its move is over: it waits, or changes again and
	// again. It may settle, or fail, later.
	Overdue Phase = "Overdue"
)

// Pace is how long a move may take, and for how long it is to be Ready.
type Pace struct {
	Soak, Deadline time.Duration
}

// State is how an installation stands.
type State struct {
	Phase Phase
	// Moved is when its controller wrote it last, or deleted it; zero: not known.
	Moved time.Time
	// Unreachable says that its user cluster can't be written to, Paused that people stopped it.
	Unreachable, Paused bool
	// Ready says that it is Ready as it is asked for now.
	Ready bool
	// Reason and Message are those of its condition Ready; empty before it has one.
	Reason, Message string
	// Cause is the reason that the cluster may have of its own for what keeps it from being Ready, such as Unschedulable; empty: none.
	Cause string
	// Next is when time alone may change the phase; zero: never.
	Next time.Time
}

// Report is what an installation says of itself, taken from it once: how it stands follows from that,
// the pace and the time, at every look.
type Report struct {
	// Live is the installation.
	Live *v1.AddonInstallation
	// IsGoing says that it is being deleted.
	IsGoing bool
	// said is the state as far as no pace and no time matter.
	said State
	// applied is when the user cluster was changed last, ready when condition Ready changed last; zero:
	// never.
	applied, ready time.Time
	// hasGivenWay says that it went back to what it had before, at its present generation; isOnce that it
	// is looked after until the first Ready.
	hasGivenWay, isOnce bool
}

// ReportOf an installation.
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

// StateOf an installation, for one look at it.
func StateOf(live *v1.AddonInstallation, pace Pace, now time.Time) State {
	report := ReportOf(live)
	return report.State(pace, now)
}

// State of the installation. An old Ready proves nothing: soak counts from the latest of the last
// move, the last change of the user cluster and Ready's own transition. A deadline counts from the
// later of move and change; while it waits for others, or for people, it does not fail. All of that
// is in hands of the cluster's users too, so a move is under way for a bounded time (ADR 65).
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

// over is when a move is over whatever comes: deadline and soak after it. Until when the user
// cluster was changed, or it waits, counts on top, which is one deadline at most.
func (r *Report) over(pace Pace) time.Time {
	begins, most := latest(r.said.Moved, r.applied), r.said.Moved.Add(pace.Deadline)
	if waitsFor(r.said.Reason) || begins.After(most) {
		begins = most
	}
	return begins.Add(pace.Deadline + pace.Soak)
}

// phase of an installation, which may be under way without end.
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

// IsReady says whether an installation is Ready as it is asked for now.
func IsReady(live *v1.AddonInstallation) bool {
	ready := meta.FindStatusCondition(live.Status.Conditions, v1.ConditionReady)
	return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == live.Generation
}

// MovedAt is when the controller that made an installation wrote it last; zero: it does not say.
func MovedAt(live *v1.AddonInstallation) time.Time {
	at, err := time.Parse(time.RFC3339Nano, live.Annotations[v1.AnnotationMoved])
	if err != nil {
		return time.Time{}
	}
	return at
}

// WasSick says whether an installation was not Ready before it was written last.
func WasSick(live *v1.AddonInstallation) bool { return live.Annotations[v1.AnnotationSick] == "true" }

// unreachable are the reasons of Ready that mean that the user cluster can't be written to.
var unreachable = map[string]bool{
	v1.ReasonClusterUnknown: true, v1.ReasonClusterNotReady: true, v1.ReasonClusterUnreachable: true,
	v1.ReasonClusterMisbehaves: true, v1.ReasonKubeconfigInvalid: true, v1.ReasonClusterSwapped: true, v1.ReasonClusterShared: true,
}

// waitsFor says whether a reason is that an installation waits for others of its cluster, or for
// people.
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
