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
	"github.com/trellis-addons/trellis/pkg/backoff"
	"github.com/trellis-addons/trellis/pkg/cluster"
	order "github.com/trellis-addons/trellis/pkg/installation"
	"github.com/trellis-addons/trellis/pkg/loop"
)

// goingTime is for how long installations are removed from a cluster that is being deleted.
const goingTime = 10 * time.Minute

// answersWithin is the part of that time, 30 s, for which an API server may not answer: one that is
// started anew, or one lost call, is not the end of it.
const answersWithin = 20

// parting is what becomes of an installation in a pass that finds its Cluster being deleted.
type parting string

const (
	// partingNone: the Cluster is not being deleted.
	partingNone parting = ""
	// partingUndecided: the cluster is paused, or what is on record can't be read now.
	partingUndecided parting = "Undecided"
	// partingLetGo: what it has goes with the cluster, or stays, without a call.
	partingLetGo parting = "LetGo"
	// partingRemoving: what it has is being removed, by template.onClusterDeletion.
	partingRemoving parting = "Removing"
	// partingUnreachable: it was to be removed, and the API server does not answer.
	partingUnreachable parting = "Unreachable"
	// partingOverdue: it was to be removed, and the time for that is over.
	partingOverdue parting = "Overdue"
	// partingUnreadable: it was to be removed, and what it has can't be read from its record.
	partingUnreadable parting = "Unreadable"
	// partingDone: it has nothing, or nothing any more.
	partingDone parting = "Done"
)

// part decides what becomes of an installation whose Cluster is being deleted, by what is on record.
// It ends the pass only where the record can't be read now. The user cluster is not called, and
// connected only for what is to be removed.
func (r *Reconciler) part(ctx context.Context, f *facts) loop.Outcome {
	f.parting = partingUndecided
	switch {
	case f.installation.Spec.DeletionPolicy == kubermaticv1.DeletionOrphan:
		f.parting = partingLetGo
		return nil
	case f.cluster.Paused:
		return nil
	}
	left := r.timeToGo(f)
	outcome := loaded(f, f.pass.LoadForRemoval(ctx))
	if _, mayPass := outcome.(loop.RetryAt); mayPass && !f.damaged && left > 0 {
		return outcome
	}
	switch record := f.pass.Record(); {
	case outcome != nil && order.GoesAlong(f.installation):
		f.parting = partingUnreadable
	case outcome != nil: // what it has is not known, and nothing waits until it is
		f.parting = partingLetGo
	case record == nil:
		f.parting = partingDone
	case record.OnClusterDeletion != kubermaticv1.ClusterDeletionRemove:
		f.parting = partingLetGo
	default:
		f.parting = r.partFrom(f, left)
	}
	return nil
}

// partFrom decides whether what is to be removed is removed, in the time that is left.
func (r *Reconciler) partFrom(f *facts, left time.Duration) parting {
	if left <= 0 {
		return partingOverdue
	}
	r.noteAnswer(f, r.isCutOff(f))
	if r.isGivenUp(f) {
		return partingUnreachable
	}
	f.pass.Asked.ClusterGoes = true
	if !f.pass.Asked.IsRemoved() {
		f.pass.Asked.RemovedSince = f.cluster.DeletedAt
	}
	return partingRemoving
}

// timeToGo is what is left of the time for removals from a cluster that is being deleted. The
// distance counts, so that clocks that differ make it no longer.
func (r *Reconciler) timeToGo(f *facts) time.Duration {
	return r.goingTime() - f.pass.Now.Sub(f.cluster.DeletedAt).Abs()
}

func (r *Reconciler) goingTime() time.Duration { return cmp.Or(r.Options.GoingTime, goingTime) }

// isCutOff says whether the API server is known not to answer. One that this process has not reached
// yet may.
func (r *Reconciler) isCutOff(f *facts) bool {
	_, err := r.Connections.Get(f.cluster, f.installation.Name, r.waker(f.installation))
	without, isCut := errors.AsType[*cluster.NotConnectedError](err)
	return isCut && !without.Connecting
}

// noteAnswer keeps since when the API server does not answer, by what it is known to do now. One that
// answers ends that.
func (r *Reconciler) noteAnswer(f *facts, isCutOff bool) {
	switch {
	case !isCutOff:
		f.memory.cutOff = time.Time{}
	case f.memory.cutOff.IsZero():
		f.memory.cutOff = f.pass.Now
	}
}

// isGivenUp says whether the API server has not answered for as long as it may.
func (r *Reconciler) isGivenUp(f *facts) bool {
	return !f.memory.cutOff.IsZero() && r.untilGivenUp(f) <= 0
}

func (r *Reconciler) untilGivenUp(f *facts) time.Duration {
	return r.goingTime()/answersWithin - f.pass.Now.Sub(f.memory.cutOff)
}

// leaveWithCluster lets an installation go that is being deleted with its Cluster, unless what it has
// is removed before.
func (r *Reconciler) leaveWithCluster(ctx context.Context, f *facts) loop.Outcome {
	if outcome := r.part(ctx, f); outcome != nil || f.parting == partingRemoving {
		return outcome
	}
	return r.letGo(ctx, f)
}

// letGo ends a removal that does not go on, and has what is left reported.
func (r *Reconciler) letGo(ctx context.Context, f *facts) loop.Outcome {
	outcome := r.leaveTraces(ctx, f.installation, f.cluster.Ref)
	if _, done := outcome.(loop.Done); done {
		f.noteLeft()
	}
	return outcome
}

// lostWhileGoing says whether a removal from a cluster that is being deleted ends, since the API server
// does not answer any more. That a pass took too long says nothing.
func (r *Reconciler) lostWhileGoing(within context.Context, f *facts, outcome loop.Outcome) bool {
	if f.parting != partingRemoving || f.connecting || within.Err() != nil || !notConnectedReasons[verdictOf(outcome).reason] {
		return false
	}
	r.noteAnswer(f, true)
	return r.isGivenUp(f)
}

// goWithCluster ends a pass over an installation that lives while its Cluster is being deleted. It is
// removed where it is to be; whatever comes of that, nothing of it holds the Cluster, so that a user
// cluster that answers again may be gone on with.
func (r *Reconciler) goWithCluster(within context.Context, f *facts, outcome loop.Outcome) loop.Outcome {
	f.memory.awaited = nil
	if f.parting == partingRemoving {
		outcome = r.run(within, f, undo)
		_, done := outcome.(loop.Done)
		switch {
		case done:
			f.parting, f.memory.installed = partingDone, f.memory.installed.Afresh()
			outcome = goingOutcome(f)
		case r.lostWhileGoing(within, f, outcome):
			f.parting = partingUnreachable
			outcome = goingOutcome(f)
		}
	}
	if f.isLeft() {
		f.noteLeft()
	}
	return r.inTime(f, f.backOff(f.overdue(within, outcome), r.Clock.Now()))
}

// goingOutcome is how an installation stands that lives, and is not removed now.
func goingOutcome(f *facts) loop.Outcome {
	message := fmt.Sprintf("cluster %q is being deleted", f.cluster.Name)
	if why := f.leftText(); why != "" {
		message += ": " + why
	}
	return waiting(kubermaticv1.ReasonClusterNotReady, message, 0)
}

// leftText says why what was to be removed is left; empty where nothing was.
func (f *facts) leftText() string {
	switch f.parting {
	case partingUnreachable:
		return "its API server does not answer, so what was to be removed is left, and goes with it or stays"
	case partingOverdue:
		return "what was to be removed before did not go in time, and goes with it or stays"
	case partingUnreadable:
		return "what was to be removed before can't be read from its record, and goes with it or stays"
	}
	return ""
}

// isLeft says whether a removal ended, and left something, for another reason than that nobody answers.
func (f *facts) isLeft() bool { return f.parting == partingOverdue || f.parting == partingUnreadable }

// noteLeft remembers what a removal left, for reportLeft. It happens once: afterwards the status no longer asks for a
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

// inTime has the next pass of a removal begin no later than the time for it ends, or that for an API
// server to answer.
func (r *Reconciler) inTime(f *facts, outcome loop.Outcome) loop.Outcome {
	left := r.timeToGo(f)
	switch {
	case f.parting == partingUnreachable:
	case f.parting != partingRemoving:
		return outcome
	case !f.memory.cutOff.IsZero():
		left = min(left, r.untilGivenUp(f))
	}
	left = max(left, time.Second)
	switch o := outcome.(type) {
	case loop.RetryAt:
		o.After = backoff.Sooner(o.After, left)
		return o
	case loop.Waiting:
		o.Recheck = backoff.Sooner(o.Recheck, left)
		return o
	case loop.Stalled:
		o.Recheck = backoff.Sooner(o.Recheck, left)
		return o
	}
	return outcome
}

// projectParting says what an installation has left in a cluster that is being deleted: neighbours
// go by that.
func (f *facts) projectParting() {
	state := &f.installation.Status
	switch f.parting {
	case partingRemoving:
		state.OnClusterDeletion = kubermaticv1.ClusterDeletionRemove
	case partingLetGo, partingOverdue, partingUnreadable:
		state.OnClusterDeletion = ""
	case partingDone:
		if state.LastApplied == nil && state.OnClusterDeletion == "" {
			return // it never had anything
		}
		state.OnClusterDeletion, state.Version, state.Artifact, state.LastApplied = "", "", nil, nil
		state.Release, state.Objects, state.Unhealthy = nil, nil, nil
		for _, earned := range []string{kubermaticv1.ConditionApplied, kubermaticv1.ConditionHealthy, kubermaticv1.ConditionDrifted} {
			meta.RemoveStatusCondition(&state.Conditions, earned)
		}
	}
}
