package addoninstallation

import (
	"context"
	"errors"
	"fmt"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/backoff"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/install/installer"
)

// remove continues the removal of an installation that is being deleted. After Done its finalizer may be removed.
func (r *Reconciler) remove(ctx, within context.Context, f *facts) *loop.Outcome {
	outcome := r.run(within, f, remove)
	if r.lostWhileGoing(within, f, outcome) {
		f.deletion = deletionUnreachable
		outcome = r.release(ctx, f)
	}
	if outcome.Is(loop.Done) {
		return outcome
	}
	return r.inTime(f, f.backOff(f.overdue(within, outcome), r.Clock.Now()))
}

// leave ends a removal that needs no call to the user cluster: the cluster is gone or being deleted, or the objects
// have to stay. If a Cluster is only not found, the removal waits.
func (r *Reconciler) leave(ctx context.Context, f *facts) *loop.Outcome {
	if err := r.locate(ctx, f); err != nil {
		return r.leaveWithoutCluster(ctx, f.installation, err)
	}
	if !cluster.BelongsTo(f.cluster, r.Options.WorkerName) {
		return &loop.Outcome{Kind: loop.NotMine}
	}
	if cluster.GoesWithPrevious(f.cluster.Ref, f.installation) {
		return r.leaveWithPrevious(ctx, f)
	}
	if f.cluster.Deleted {
		return r.leaveWithCluster(ctx, f)
	}
	if f.cluster.Paused {
		return pausedCluster(f.cluster)
	}
	orphaned := f.installation.Spec.DeletionPolicy == kubermaticv1.DeletionOrphan
	outcome := loaded(f, f.run.LoadForRemoval(ctx))
	if orphaned && f.damaged {
		return r.leaveObjects(ctx, f) // objects that stay need not be known
	}
	if outcome != nil {
		return withWayOut(f.damaged, outcome)
	}
	if f.run.Record() == nil {
		return r.leaveTraces(ctx, f.installation)
	}
	if orphaned {
		return r.leaveObjects(ctx, f)
	}
	return nil
}

// leaveObjects releases an installation and leaves its objects.
func (r *Reconciler) leaveObjects(ctx context.Context, f *facts) *loop.Outcome {
	if outcome := r.revokeAll(ctx, f); outcome != nil { // including credentials that hooks just got and that the cache may not show yet
		return outcome
	}
	outcome := r.leaveTraces(ctx, f.installation, f.cluster.Ref)
	if !outcome.Is(loop.Done) {
		return outcome
	}
	return r.forgetRecords(ctx, f)
}

// leaveTraces removes objects from the seed that a released installation no longer needs: credentials, and copies of
// the pull Secret, if nothing of it is removed.
func (r *Reconciler) leaveTraces(ctx context.Context, installation *kubermaticv1.AddonInstallation, clusters ...target.Ref) *loop.Outcome {
	if outcome := r.revokeHeld(ctx, installation); outcome != nil {
		return outcome
	}
	if r.PullSecret == nil {
		return &loop.Outcome{Kind: loop.Done}
	}
	for _, one := range clusters {
		if err := r.PullSecret.Leave(ctx, one, installation.Name); err != nil {
			return failed(err)
		}
	}
	return &loop.Outcome{Kind: loop.Done}
}

// withWayOut adds the solution if no record is readable: retries do not help.
func withWayOut(damaged bool, outcome *loop.Outcome) *loop.Outcome {
	if !outcome.Is(loop.RetryAt) || !damaged {
		return outcome
	}
	outcome.Message += ": the applied objects are unknown, so nothing is removed; set deletionPolicy to Orphan to delete the installation " +
		"and leave its objects"
	return outcome
}

// leaveWithoutCluster ends the removal of an installation that never had a Cluster, or whose Clusters are gone.
func (r *Reconciler) leaveWithoutCluster(ctx context.Context, installation *kubermaticv1.AddonInstallation, unknown error) *loop.Outcome {
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

// leaveWithPrevious ends the removal of an installation that belongs to the previous Cluster of the same name, without a
// call: the new Cluster may have the same user cluster, as after a restore, and the objects there stay.
func (r *Reconciler) leaveWithPrevious(ctx context.Context, f *facts) *loop.Outcome {
	outcome := r.leaveWithoutCluster(ctx, f.installation, &cluster.UnknownError{Namespace: f.cluster.Namespace, Name: f.cluster.Name})
	if outcome.Is(loop.Waiting) {
		outcome.Message = fmt.Sprintf(
			"the installation belongs to a previous Cluster %q, and is removed once that Cluster is known to be deleted", f.cluster.Name)
	}
	return outcome
}

// clustersOf are the Clusters in which an installation may have objects: the one in its status or, if a reconciliation
// ended before that was written, those of its records. Without either nothing was ever applied.
func (r *Reconciler) clustersOf(
	ctx context.Context, installation *kubermaticv1.AddonInstallation,
) ([]kubermaticv1.ClusterIdentity, error) {
	if known := installation.Status.Cluster; known != nil {
		return []kubermaticv1.ClusterIdentity{*known}, nil
	}
	return r.Records.Clusters(ctx, installation.Namespace, installation.Name)
}

// untilGone waits for a Cluster that is not found and not known to be gone.
func untilGone(unknown error) *loop.Outcome {
	outcome := unknownCluster(unknown)
	if outcome.Is(loop.Waiting) {
		outcome.Recheck = cluster.GoneInterval
		if found, isUnknown := errors.AsType[*cluster.UnknownError](unknown); isUnknown && !found.IsContested() {
			outcome.Message = fmt.Sprintf("no Cluster is found in namespace %q: the installation is removed once the Cluster is known to be gone",
				found.Namespace)
		}
	}
	return outcome
}

// forgetRecords is the last step: a crash before it restarts the removal.
func (r *Reconciler) forgetRecords(ctx context.Context, f *facts) *loop.Outcome {
	if stop := f.run.Forget(ctx); stop != nil {
		return stop
	}
	text := "removed from cluster %q"
	if f.installation.Spec.DeletionPolicy == kubermaticv1.DeletionOrphan {
		text = "left in cluster %q as it is: deletionPolicy is Orphan"
	}
	r.Recorder.Eventf(f.installation, nil, "Normal", kubermaticv1.EventRemoved, "Remove", text, f.cluster.Name)
	return &loop.Outcome{Kind: loop.Done}
}

// preDelete runs the hooks before a removal. Until they end, credentials are renewed, since hooks clean up on the hub;
// once an object is removed they are not. A failed renewal is in the message, and delays nothing.
func (r *Reconciler) preDelete(ctx context.Context, f *facts) *loop.Outcome {
	held := f.run.PreDelete(ctx)
	if !held.Is(loop.Waiting) {
		return held
	}
	said := *held
	if err := r.keepAccess(ctx, f, f.run.Record().Access, f.ofRecord()); err != nil {
		said.Message += "; " + err.Error()
		said.Recheck = backoff.Sooner(said.Recheck, installer.RefusedRecheck)
	}
	if stop := f.run.ApplySecrets(ctx); stop != nil {
		said.Message += "; " + stop.Message
		said.Recheck = backoff.Sooner(said.Recheck, installer.RefusedRecheck)
	}
	said.Recheck = backoff.Sooner(said.Recheck, f.nextAccess())
	return &said
}
