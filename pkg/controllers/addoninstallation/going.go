package addoninstallation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
)

// goingTime limits removals from a cluster that is being deleted.
const goingTime = 10 * time.Minute

// answersWithin is the part of that time, 30 s, for which an API server may be silent: a restart, or one lost call,
// does not end the removal.
const answersWithin = 20

// deletion is the decision about an installation whose Cluster is being deleted.
type deletion string

const (
	// deletionNone: the Cluster is not being deleted.
	deletionNone deletion = ""
	// deletionUndecided: the cluster is paused, or the record is unreadable now.
	deletionUndecided deletion = "Undecided"
	// deletionReleased: its objects are deleted with the cluster, or stay, without a call.
	deletionReleased deletion = "LetGo"
	// deletionRemoving: its objects are being removed, as template.onClusterDeletion says.
	deletionRemoving deletion = "Removing"
	// deletionUnreachable: its objects were to be removed, but the API server does not answer.
	deletionUnreachable deletion = "Unreachable"
	// deletionOverdue: its objects were to be removed, but the time for that is over.
	deletionOverdue deletion = "Overdue"
	// deletionUnreadable: its objects were to be removed, but its record is unreadable.
	deletionUnreadable deletion = "Unreadable"
	// deletionDone: it has no objects, or no longer has any.
	deletionDone deletion = "Done"
)

// part decides by the record how to treat an installation whose Cluster is being deleted. It ends the reconciliation
// only if the record is unreadable now. The user cluster is not called, and connected only for a removal.
func (r *Reconciler) part(ctx context.Context, f *facts) *loop.Outcome {
	f.deletion = deletionUndecided
	switch {
	case f.installation.Spec.DeletionPolicy == kubermaticv1.DeletionOrphan:
		f.deletion = deletionReleased
		return nil
	case f.cluster.Paused:
		return nil
	}
	left := r.timeToGo(f)
	outcome := loaded(f, f.run.LoadForRemoval(ctx))
	if outcome.Is(loop.RetryAt) && !f.damaged && left > 0 {
		return outcome
	}
	switch record := f.run.Record(); {
	case outcome != nil && installation.GoesAlong(f.installation):
		f.deletion = deletionUnreadable
	case outcome != nil: // its objects are unknown, and nothing waits until they are known
		f.deletion = deletionReleased
	case record == nil:
		f.deletion = deletionDone
	case record.OnClusterDeletion != kubermaticv1.ClusterDeletionRemove:
		f.deletion = deletionReleased
	default:
		f.deletion = r.partFrom(f, left)
	}
	return nil
}

// partFrom decides whether the removal is done in the remaining time.
func (r *Reconciler) partFrom(f *facts, left time.Duration) deletion {
	if left <= 0 {
		return deletionOverdue
	}
	r.noteAnswer(f, r.isCutOff(f))
	if r.isGivenUp(f) {
		return deletionUnreachable
	}
	f.run.Asked.ClusterGoes = true
	if !f.run.Asked.IsRemoved() {
		f.run.Asked.RemovedSince = f.cluster.DeletedAt
	}
	return deletionRemoving
}

// timeToGo is the remaining time for removals from a cluster that is being deleted. The absolute difference counts, so
// that differing clocks do not extend it.
func (r *Reconciler) timeToGo(f *facts) time.Duration {
	return r.goingTime() - f.run.Now.Sub(f.cluster.DeletedAt).Abs()
}

func (r *Reconciler) goingTime() time.Duration { return cmp.Or(r.Options.GoingTime, goingTime) }

// isCutOff says whether the API server is known not to answer. One that this process has not reached yet is not.
func (r *Reconciler) isCutOff(f *facts) bool {
	_, err := r.Connections.Get(f.cluster, f.installation.Name, r.waker(f.installation))
	without, isCut := errors.AsType[*cluster.NotConnectedError](err)
	return isCut && !without.Connecting
}

// noteAnswer records since when the API server does not answer; an answer clears it.
func (r *Reconciler) noteAnswer(f *facts, isCutOff bool) {
	switch {
	case !isCutOff:
		f.memory.cutOff = time.Time{}
	case f.memory.cutOff.IsZero():
		f.memory.cutOff = f.run.Now
	}
}

// isGivenUp says whether the API server has been silent for longer than allowed.
func (r *Reconciler) isGivenUp(f *facts) bool {
	return !f.memory.cutOff.IsZero() && r.untilGivenUp(f) <= 0
}

func (r *Reconciler) untilGivenUp(f *facts) time.Duration {
	return r.goingTime()/answersWithin - f.run.Now.Sub(f.memory.cutOff)
}

// leaveWithCluster releases an installation that is being deleted with its Cluster, unless its objects are removed
// first.
func (r *Reconciler) leaveWithCluster(ctx context.Context, f *facts) *loop.Outcome {
	if outcome := r.part(ctx, f); outcome != nil || f.deletion == deletionRemoving {
		return outcome
	}
	return r.release(ctx, f)
}

// release ends a removal that can't continue, and reports the remaining objects.
func (r *Reconciler) release(ctx context.Context, f *facts) *loop.Outcome {
	outcome := r.leaveTraces(ctx, f.installation, f.cluster.Ref)
	if outcome.Is(loop.Done) {
		f.noteLeft()
	}
	return outcome
}

// lostWhileGoing says whether a removal from a cluster that is being deleted ends because the API server stopped
// answering. A reconciliation that exceeded its time is no evidence of that.
func (r *Reconciler) lostWhileGoing(within context.Context, f *facts, outcome *loop.Outcome) bool {
	if f.deletion != deletionRemoving || f.connecting || within.Err() != nil || !notConnectedReasons[outcome.Reason] {
		return false
	}
	r.noteAnswer(f, true)
	return r.isGivenUp(f)
}

// goWithCluster ends a reconciliation of an installation that is not being deleted while its Cluster is. It runs the
// removal if the record asks for it. Regardless of the result, the installation does not block the Cluster, so that the
// work can continue if the user cluster answers again.
func (r *Reconciler) goWithCluster(within context.Context, f *facts, outcome *loop.Outcome) *loop.Outcome {
	f.memory.awaited = nil
	if f.deletion == deletionRemoving {
		outcome = r.run(within, f, undo)
		switch {
		case outcome.Is(loop.Done):
			f.deletion, f.memory.installed = deletionDone, f.memory.installed.Afresh()
			outcome = goingOutcome(f)
		case r.lostWhileGoing(within, f, outcome):
			f.deletion = deletionUnreachable
			outcome = goingOutcome(f)
		}
	}
	if f.isLeft() {
		f.noteLeft()
	}
	return r.inTime(f, f.backOff(f.overdue(within, outcome), r.Clock.Now()))
}

// goingOutcome is the outcome for an installation that is not being deleted and is not removed now.
func goingOutcome(f *facts) *loop.Outcome {
	message := fmt.Sprintf("cluster %q is being deleted", f.cluster.Name)
	if why := f.leftText(); why != "" {
		message += ": " + why
	}
	return waiting(kubermaticv1.ReasonClusterNotReady, message, 0)
}

// leftText says why objects remain that were to be removed; empty if there are none.
func (f *facts) leftText() string {
	switch f.deletion {
	case deletionUnreachable:
		return "its API server does not answer, so the removed installation's objects were not deleted: the cluster's deletion may leave some"
	case deletionOverdue:
		return "the removed installation's objects were not deleted in time: the cluster's deletion may leave some"
	case deletionUnreadable:
		return "the removed installation's record can't be read, so its objects were not deleted: the cluster's deletion may leave some"
	}
	return ""
}

// isLeft says whether a removal ended and left objects for another reason than a silent API server.
func (f *facts) isLeft() bool {
	return f.deletion == deletionOverdue || f.deletion == deletionUnreadable
}

// noteLeft records a removal's leftovers, for reportLeft. It happens once: afterwards the status no longer asks for a
// removal, or the finalizer is gone.
func (f *facts) noteLeft() {
	isHeld := slices.Contains(f.installation.Finalizers, kubermaticv1.FinalizerCleanupInstallation)
	if why := f.leftText(); why != "" && isHeld && f.installation.Status.OnClusterDeletion != "" {
		f.leftBehind = fmt.Sprintf("cluster %q is being deleted: %s", f.cluster.Name, why)
	}
}

// reportLeft emits the event only after the status or the finalizers were written: the next reconciliation repeats a
// write that conflicts, and would report twice.
func (r *Reconciler) reportLeft(ctx context.Context, f *facts) {
	if f.leftBehind != "" {
		r.report(ctx, f, occasion{corev1.EventTypeWarning, kubermaticv1.EventLeftBehind, "Remove"}, f.leftBehind)
	}
}

// inTime makes the next reconciliation of a removal begin before the time for it, or for an answer of the API server,
// ends.
func (r *Reconciler) inTime(f *facts, outcome *loop.Outcome) *loop.Outcome {
	left := r.timeToGo(f)
	switch {
	case f.deletion == deletionUnreachable:
	case f.deletion != deletionRemoving:
		return outcome
	case !f.memory.cutOff.IsZero():
		left = min(left, r.untilGivenUp(f))
	}
	return outcome.Within(max(left, time.Second), loop.RetryAt, loop.Waiting, loop.Stalled)
}

// projectDeletion shows in the status whether an installation has objects left in a cluster that is being deleted. Other
// installations read it.
func (f *facts) projectDeletion() {
	state := &f.installation.Status
	switch f.deletion {
	case deletionRemoving:
		state.OnClusterDeletion = kubermaticv1.ClusterDeletionRemove
	case deletionReleased, deletionOverdue, deletionUnreadable:
		state.OnClusterDeletion = ""
	case deletionDone:
		if state.LastApplied == nil && state.OnClusterDeletion == "" {
			return // it never had objects
		}
		state.OnClusterDeletion, state.Version, state.Artifact, state.LastApplied = "", "", nil, nil
		state.Release, state.Objects, state.Unhealthy = nil, nil, nil
		for _, earned := range []string{kubermaticv1.ConditionApplied, kubermaticv1.ConditionHealthy, kubermaticv1.ConditionDrifted} {
			meta.RemoveStatusCondition(&state.Conditions, earned)
		}
	}
}
