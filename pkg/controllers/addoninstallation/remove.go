package addoninstallation

import (
	"context"
	"fmt"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/backoff"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/installer"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/target"
)

// remove carries on the removal of an installation that is being deleted. Done: its finalizer may go.
func (r *Reconciler) remove(ctx, within context.Context, f *facts) loop.Outcome {
	outcome := r.run(within, f, remove)
	if r.lostWhileGoing(within, f, outcome) {
		f.parting = partingUnreachable
		outcome = r.letGo(ctx, f)
	}
	if _, done := outcome.(loop.Done); done {
		return outcome
	}
	return r.inTime(f, f.backOff(f.overdue(within, outcome), r.Clock.Now()))
}

// leave ends a removal that needs no call to the user cluster: the cluster goes or is gone, or the
// objects are to stay. Where a Cluster merely can't be found, the removal waits.
func (r *Reconciler) leave(ctx context.Context, f *facts) loop.Outcome {
	if err := r.locate(ctx, f); err != nil {
		return r.leaveWithoutCluster(ctx, f.installation, err)
	}
	if !cluster.BelongsTo(f.cluster, r.Options.WorkerName) {
		return loop.NotMine{}
	}
	if cluster.GoesWithFormer(f.cluster.Ref, f.installation) {
		return r.leaveWithFormer(ctx, f)
	}
	if f.cluster.Deleted {
		return r.leaveWithCluster(ctx, f)
	}
	if f.cluster.Paused {
		return pausedCluster(f.cluster)
	}
	orphaned := f.installation.Spec.DeletionPolicy == kubermaticv1.DeletionOrphan
	outcome := loaded(f, f.pass.LoadForRemoval(ctx))
	if orphaned && f.damaged {
		return r.leaveObjects(ctx, f) // objects that are to stay need not be known
	}
	if outcome != nil {
		return withWayOut(f.damaged, outcome)
	}
	if f.pass.Record() == nil {
		return r.leaveTraces(ctx, f.installation)
	}
	if orphaned {
		return r.leaveObjects(ctx, f)
	}
	return nil
}

// leaveObjects lets an installation go and leaves what it has.
func (r *Reconciler) leaveObjects(ctx context.Context, f *facts) loop.Outcome {
	if outcome := r.revokeAll(ctx, f); outcome != nil { // what hooks were just given, and the cache may not show yet, too
		return outcome
	}
	outcome := r.leaveTraces(ctx, f.installation, f.cluster.Ref)
	if _, done := outcome.(loop.Done); !done {
		return outcome
	}
	return r.forgetRecords(ctx, f)
}

// leaveTraces has an installation that is let go need nothing on the seed any more: no credential, and no
// copy of the pull Secret, where nothing of it is removed.
func (r *Reconciler) leaveTraces(ctx context.Context, installation *kubermaticv1.AddonInstallation, clusters ...target.Ref) loop.Outcome {
	if outcome := r.revokeHeld(ctx, installation); outcome != nil {
		return outcome
	}
	if r.PullSecret == nil {
		return loop.Done{}
	}
	for _, one := range clusters {
		if err := r.PullSecret.Leave(ctx, one, installation.Name); err != nil {
			return failed(err)
		}
	}
	return loop.Done{}
}

// withWayOut says what to do where no record can be read: no try will mend that.
func withWayOut(damaged bool, outcome loop.Outcome) loop.Outcome {
	retry, ok := outcome.(loop.RetryAt)
	if !ok || !damaged {
		return outcome
	}
	retry.Message += ": what was applied is not known, so nothing is removed; set deletionPolicy to Orphan to let the installation go " +
		"and leave everything where it is"
	return retry
}

// leaveWithoutCluster ends the removal of an installation that never had a Cluster, or whose
// Clusters are gone.
func (r *Reconciler) leaveWithoutCluster(ctx context.Context, installation *kubermaticv1.AddonInstallation, unknown error) loop.Outcome {
	had, err := r.clustersOf(ctx, installation)
	if err != nil {
		return failed(err)
	}
	var clusters []target.Ref
	for _, known := range had {
		recorded := target.Recorded(installation.Namespace, known)
		clusters = append(clusters, recorded)
		gone, err := r.Finder.Gone(ctx, recorded)
		if err != nil {
			return failed(err)
		}
		if !gone {
			return untilGone(unknown)
		}
	}
	return r.leaveTraces(ctx, installation, clusters...)
}

// leaveWithFormer ends the removal of an installation that goes with the Cluster that had the name
// before, without a call: the next one may have the same user cluster, as after a restore, and what
// works there stays.
func (r *Reconciler) leaveWithFormer(ctx context.Context, f *facts) loop.Outcome {
	outcome := r.leaveWithoutCluster(ctx, f.installation, &cluster.UnknownError{Namespace: f.cluster.Namespace, Name: f.cluster.Name})
	if wait, isWaiting := outcome.(loop.Waiting); isWaiting {
		wait.Message = fmt.Sprintf("it belongs to a former Cluster %q, and goes once that is known to be gone", f.cluster.Name)
		return wait
	}
	return outcome
}

// clustersOf are the Clusters that may have something of an installation: the one that its status
// names or, if a pass ended before that was written, those of its records. Without either nothing
// was ever applied.
func (r *Reconciler) clustersOf(
	ctx context.Context, installation *kubermaticv1.AddonInstallation,
) ([]kubermaticv1.ClusterIdentity, error) {
	if known := installation.Status.Cluster; known != nil {
		return []kubermaticv1.ClusterIdentity{*known}, nil
	}
	return r.Records.Clusters(ctx, installation.Namespace, installation.Name)
}

// untilGone waits for a Cluster that can't be found and is not known to be gone.
func untilGone(unknown error) loop.Outcome {
	outcome := unknownCluster(unknown)
	if wait, ok := outcome.(loop.Waiting); ok {
		wait.Recheck = cluster.GoneInterval
		return wait
	}
	return outcome
}

// forgetRecords is the last step: until here a crash begins the removal again.
func (r *Reconciler) forgetRecords(ctx context.Context, f *facts) loop.Outcome {
	if stop := f.pass.Forget(ctx); stop != nil {
		return outcomeOf(stop)
	}
	text := "removed from cluster %q"
	if f.installation.Spec.DeletionPolicy == kubermaticv1.DeletionOrphan {
		text = "left in cluster %q as it is: deletionPolicy is Orphan"
	}
	r.Recorder.Eventf(f.installation, nil, "Normal", kubermaticv1.EventRemoved, "Remove", text, f.cluster.Name)
	return loop.Done{}
}

// preDelete runs the hooks before a removal. While they hold it, credentials are renewed, since hooks clean up on the hub; once an object
// is removed they are renewed no more. A failed renewal is told in the message, and delays nothing.
func (r *Reconciler) preDelete(ctx context.Context, f *facts) loop.Outcome {
	held := f.pass.PreDelete(ctx)
	if held == nil || held.Kind != installer.Waiting {
		return outcomeOf(held)
	}
	said := *held
	if err := r.keepAccess(ctx, f, f.pass.Record().Access, f.ofRecord()); err != nil {
		said.Message += "; " + err.Error()
		said.Recheck = backoff.Sooner(said.Recheck, installer.RefusedRecheck)
	}
	if stop := f.pass.KeepSecrets(ctx); stop != nil {
		said.Message += "; " + stop.Message
		said.Recheck = backoff.Sooner(said.Recheck, installer.RefusedRecheck)
	}
	said.Recheck = backoff.Sooner(said.Recheck, f.nextAccess())
	return outcomeOf(&said)
}
