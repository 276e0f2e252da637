package addoninstallation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/backoff"
	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/helmrelease"
	"github.com/trellis-addons/trellis/pkg/hooks"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/removal"
	"github.com/trellis-addons/trellis/pkg/revision"
	"github.com/trellis-addons/trellis/pkg/target"
	"github.com/trellis-addons/trellis/pkg/text"
)

const (
	// removalRecheck is how often a removal that waits for something else than objects is looked at. Objects that go are looked for after
	// firstLook, and while none goes ever more rarely, up to slowestRemovalLook; removalBlocked is when the message says that it hangs.
	removalRecheck     = 300 * time.Millisecond
	slowestRemovalLook = 3 * time.Second
	removalBlocked     = time.Minute
)

// letGo ends a removal that needs no call to the user cluster: the cluster goes or is gone, or the objects are to stay.
// A Cluster that merely can't be found lets nothing go.
func (r *Reconciler) letGo(ctx context.Context, f *facts) loop.Outcome {
	if err := r.locate(ctx, f); err != nil {
		return r.letGoWithoutCluster(ctx, f, err)
	}
	if !cluster.BelongsTo(f.cluster, r.Options.WorkerName) {
		return loop.NotMine{}
	}
	if f.cluster.Deleted {
		return loop.Done{}
	}
	if f.cluster.Paused {
		return pausedCluster(f)
	}
	orphaned := f.installation.Spec.DeletionPolicy == kubermaticv1.DeletionOrphan
	if f.record() == nil {
		f.memory.loaded = false // nothing on record lets it go: that is looked at past what is shared
	}
	outcome := r.loadRecordBy(ctx, f, r.Records.Load)
	if orphaned && f.damaged {
		return r.forgetRecords(ctx, f) // objects that are to stay need not be known
	}
	if outcome != nil {
		return withWayOut(f, outcome)
	}
	if f.record() == nil {
		return loop.Done{}
	}
	if orphaned {
		return r.forgetRecords(ctx, f)
	}
	return nil
}

// withWayOut says what to do about an installation of which no record can be read: no try will mend that.
func withWayOut(f *facts, outcome loop.Outcome) loop.Outcome {
	retry, ok := outcome.(loop.RetryAt)
	if !ok || !f.damaged {
		return outcome
	}
	retry.Message += ": what was applied is not known, so nothing is removed; set deletionPolicy to Orphan to let the installation go " +
		"and leave everything where it is"
	return retry
}

// letGoWithoutCluster lets an installation go that never had a Cluster, or whose Clusters are gone.
func (r *Reconciler) letGoWithoutCluster(ctx context.Context, f *facts, unknown error) loop.Outcome {
	had, err := r.clustersOf(ctx, f)
	if err != nil {
		return failed(err)
	}
	for _, known := range had {
		gone, err := r.Finder.Gone(ctx, target.Recorded(f.installation.Namespace, known))
		if err != nil {
			return failed(err)
		}
		if !gone {
			return untilGone(unknown)
		}
	}
	return loop.Done{}
}

// clustersOf are the Clusters that may have something of an installation: the one that its status names or, if a pass ended before
// that was written, those of its records. Without either nothing was ever applied.
func (r *Reconciler) clustersOf(ctx context.Context, f *facts) ([]kubermaticv1.ClusterIdentity, error) {
	if known := f.installation.Status.Cluster; known != nil {
		return []kubermaticv1.ClusterIdentity{*known}, nil
	}
	return r.Records.Clusters(ctx, f.installation.Namespace, f.installation.Name)
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

// removeObjects takes the removal as far as it goes now. Namespaces are left where hooks have to run once all else is gone.
func (r *Reconciler) removeObjects(ctx context.Context, f *facts) loop.Outcome {
	defer r.handovers.begin(f.installation.Namespace)()
	objects, waits, err := r.goes(ctx, f)
	if err != nil {
		return failed(err)
	}
	var outcome loop.Outcome
	if f.deletesWithHooks(hooks.ActionDelete.Post()) {
		outcome = r.removeInventory(ctx, f, slices.DeleteFunc(objects, isNamespaceEntry))
	} else {
		outcome = r.removeWithNamespace(ctx, f, objects)
	}
	if outcome == nil && waits != "" && f.now.Sub(f.installation.DeletionTimestamp.Time) < removalBlocked {
		return loop.Waiting{
			Condition: kubermaticv1.ConditionReady, Reason: kubermaticv1.ReasonRemoving, Recheck: removalRecheck,
			Message: fmt.Sprintf("installation %q, which is removed too, goes first: both have objects of the whole cluster", waits),
		}
	}
	return outcome
}

// removeNamespaces removes the namespaces that were left for hooks.
func (r *Reconciler) removeNamespaces(ctx context.Context, f *facts) loop.Outcome {
	if len(f.record().Hooks) == 0 {
		return nil
	}
	namespaces := slices.DeleteFunc(removable(f.record()), func(entry ownership.Entry) bool { return !isNamespaceEntry(entry) })
	return r.removeWithNamespace(ctx, f, namespaces)
}

func isNamespaceEntry(entry ownership.Entry) bool { return entry.GroupKind() == namespaceKind }

// removeWithNamespace removes an inventory and, where the installation is the last one that asked for its namespace, the
// namespace too, if a former one of them made it. Of those that are removed at the same time the last by name waits for the
// others, as long as a removal may take: each would see another one otherwise, and none take the namespace.
func (r *Reconciler) removeWithNamespace(ctx context.Context, f *facts, inventory ownership.Inventory) loop.Outcome {
	if !f.installation.Spec.CreateNamespace {
		return r.removeInventory(ctx, f, inventory)
	}
	others, err := r.othersOfCluster(ctx, f)
	if err != nil {
		return failed(err)
	}
	target := f.record().TargetNamespace
	sharing := slices.DeleteFunc(others, func(other kubermaticv1.AddonInstallation) bool { return other.Spec.TargetNamespace != target })
	if len(sharing) == 0 {
		inherited, err := removal.Inherited(ctx, f.target(), f.owner, target, r.namesIn(f.installation.Namespace, f.owner.ClusterUID))
		if err != nil {
			return r.remoteFailed(f, kubermaticv1.ConditionReady, err)
		}
		if inherited != nil {
			inventory = append(inventory, *inherited)
		}
	}
	outcome := r.removeInventory(ctx, f, inventory)
	if outcome == nil && isLastToGo(f, sharing) && f.now.Sub(f.installation.DeletionTimestamp.Time) < removalBlocked {
		return loop.Waiting{
			Condition: kubermaticv1.ConditionReady, Reason: kubermaticv1.ReasonRemoving, Recheck: removalRecheck,
			Message: fmt.Sprintf("installation %q, which is removed too, goes first: both have namespace %q", sharing[0].Name, target),
		}
	}
	return outcome
}

// isLastToGo says whether all that share a namespace with an installation are being removed, and it is the last by name.
func isLastToGo(f *facts, sharing []kubermaticv1.AddonInstallation) bool {
	return len(sharing) > 0 && !slices.ContainsFunc(sharing, func(other kubermaticv1.AddonInstallation) bool {
		return other.DeletionTimestamp == nil || other.Name > f.installation.Name
	})
}

func (r *Reconciler) removeInventory(ctx context.Context, f *facts, inventory ownership.Inventory) loop.Outcome {
	record := f.record()
	others, err := r.othersOfCluster(ctx, f)
	if err != nil {
		return failed(err)
	}
	var targeted []string // they stay, even if nothing is in them
	for _, other := range others {
		targeted = append(targeted, other.Spec.TargetNamespace)
	}
	left, blocked, err := removal.Remove(ctx, f.target(), inventory, removal.RemoveOptions{
		Owner: f.owner, CRDs: record.CRDs.Remove, Namespace: record.TargetNamespace, KeepNamespaces: targeted,
		All: slices.Concat(removable(record), record.Shared), Kept: func(namespace, why string) { r.tellKept(f, namespace, why) },
	})
	if err != nil {
		return r.remoteFailed(f, kubermaticv1.ConditionReady, err)
	}
	if len(left) == 0 {
		return nil
	}
	return removing(f, left, blocked)
}

// tellKept tells once of a namespace that was made for add-ons and stays.
func (r *Reconciler) tellKept(f *facts, namespace, why string) {
	if f.memory.kept[namespace] {
		return
	}
	if f.memory.kept == nil {
		f.memory.kept = map[string]bool{}
	}
	f.memory.kept[namespace] = true
	r.Recorder.Eventf(f.installation, nil, "Normal", kubermaticv1.EventNamespaceKept, "Remove",
		"namespace %q of the user cluster stays: %s", namespace, text.Message(why))
}

// othersOfCluster are the other installations of the cluster. They are shared with the cache, and only read.
func (r *Reconciler) othersOfCluster(ctx context.Context, f *facts) ([]kubermaticv1.AddonInstallation, error) {
	list := &kubermaticv1.AddonInstallationList{}
	if err := r.Client.List(ctx, list, client.InNamespace(f.installation.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the cluster's installations: %w", err)
	}
	return slices.DeleteFunc(slices.Clone(list.Items), func(other kubermaticv1.AddonInstallation) bool {
		return other.Name == f.installation.Name
	}), nil
}

// removable is everything that a record says the user cluster may hold: what was applied, what was superseded and not
// yet pruned. The inventory of a rollout that never came to its end holds what was planned, without UIDs.
func removable(record *revision.Record) ownership.Inventory {
	return slices.Concat(record.Superseded, record.Inventory)
}

func removing(f *facts, left ownership.Inventory, blocked []calls.Note) loop.Outcome {
	f.memory.leaves(len(left))
	outcome := loop.Waiting{
		Condition: kubermaticv1.ConditionReady, Reason: kubermaticv1.ReasonRemoving,
		Message: fmt.Sprintf("still to go: %s, next %s", objectCount(len(left)), left[len(left)-1].Key),
		Recheck: backoff.After(f.memory.removalLooks, firstLook, slowestRemovalLook),
	}
	if len(blocked) > 0 && f.now.Sub(f.installation.DeletionTimestamp.Time) > removalBlocked {
		outcome.Reason, outcome.Message = kubermaticv1.ReasonRemovalBlocked, noteText(blocked)
		outcome.Recheck = slowestLook
	}
	return outcome
}

// removeHelm takes the release's Secrets away.
func (r *Reconciler) removeHelm(ctx context.Context, f *facts) loop.Outcome {
	for _, helm := range []*helmrelease.Release{f.record().Helm, f.record().Former} {
		if helm == nil {
			continue
		}
		if err := helmrelease.Remove(ctx, f.connection.Secrets.Secrets(helm.Namespace), helm.Name, f.owner); err != nil {
			return r.remoteFailed(f, kubermaticv1.ConditionReady, err)
		}
	}
	return nil
}

// forgetRecords is the last step: until here a crash begins the removal again.
func (r *Reconciler) forgetRecords(ctx context.Context, f *facts) loop.Outcome {
	if err := r.Records.Forget(ctx, f.installation.Namespace, f.owner); err != nil {
		return failed(err)
	}
	text := "removed from cluster %q"
	if f.installation.Spec.DeletionPolicy == kubermaticv1.DeletionOrphan {
		text = "left in cluster %q as it is: deletionPolicy is Orphan"
	}
	r.Recorder.Eventf(f.installation, nil, "Normal", kubermaticv1.EventRemoved, "Remove", text, f.cluster.Name)
	return loop.Done{}
}
