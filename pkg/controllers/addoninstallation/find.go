package addoninstallation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/budget"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
	"github.com/trellis-addons/trellis/pkg/install/installer"
)

// clusterRecheck is the interval of looking for a missing or unready Cluster, in addition to its events.
const clusterRecheck = time.Minute

// locate finds the installation's Cluster, and derives its facts. Every reconciliation begins with it, also a removal.
// A Cluster that was recreated for the same user cluster keeps its IDs.
func (r *Reconciler) locate(ctx context.Context, f *facts) error {
	f.run.Now = r.Clock.Now()
	found, err := r.Finder.Find(ctx, target.InstalledIn(f.installation))
	if err != nil {
		return err
	}
	origin, err := r.Connections.Origin(ctx, found.Ref)
	if err != nil {
		return err
	}
	f.cluster = found
	r.clusters.note(f.installation, found.Ref)
	f.run.Cluster, f.run.ClusterOwner = found.Ref, found.Owner
	f.run.Seed.NameOf = func(origin types.UID, id string) string { return r.nameOf(found, origin, id) }
	f.run.Owner = ownership.Owner{ClusterUID: origin, Installation: f.installation.Name}
	f.memory.belongTo(f.run.Owner)
	f.run.Refusals = f.memory.refusals
	return nil
}

// findCluster finds the Cluster of an installation that is not being deleted. The Cluster's identity is written with
// the reconciliation's status; until then, release records have it. For core add-ons, and for a changed Cluster, it is
// written before any other step: their protection, and a removal that finds no Cluster, depend on the status.
func (r *Reconciler) findCluster(ctx context.Context, f *facts) *loop.Outcome {
	if err := r.locate(ctx, f); err != nil {
		return unknownCluster(err)
	}
	if !cluster.BelongsTo(f.cluster, r.Options.WorkerName) {
		return &loop.Outcome{Kind: loop.NotMine}
	}
	identity := f.cluster.Identity()
	known := f.installation.Status.Cluster
	if cluster.GoesWithPrevious(f.cluster.Ref, f.installation) {
		return waiting(kubermaticv1.ReasonRemoving, fmt.Sprintf("the installation is removed together with the previous Cluster "+
			"%q", f.cluster.Name), clusterRecheck)
	}
	f.identity = &identity
	if known == nil && f.installation.Spec.CoreAddon || known != nil && *known != identity {
		return checkpoint(kubermaticv1.ConditionReady, fmt.Sprintf("the installation belongs to cluster %q", f.cluster.Name))
	}
	if f.cluster.Deleted {
		return cmp.Or(r.part(ctx, f), goingOutcome(f))
	}
	return nil
}

// unpaused ends the reconciliation if the cluster or the installation is paused.
func (r *Reconciler) unpaused(_ context.Context, f *facts) *loop.Outcome {
	switch {
	case f.cluster.Paused:
		f.run.Lost()
		return pausedCluster(f.cluster)
	case f.installation.Spec.Paused:
		f.run.Lost()
		return waiting(kubermaticv1.ReasonPaused, "the installation is paused: set spec.paused to false to continue", 0)
	case f.cluster.KubernetesVersion == "":
		return waiting(kubermaticv1.ReasonClusterNotReady, fmt.Sprintf("cluster %q has no version yet", f.cluster.Name), clusterRecheck)
	}
	return nil
}

// withinShare neither installs nor updates the newest installations if a cluster exceeds its share of the seed.
// Admission, if enabled, refuses them before. The same holds for installations that exceed the manager's memory limit.
// Once there is space, the status changes, by which the cache gets the whole object. Installed objects are maintained.
func (r *Reconciler) withinShare(ctx context.Context, f *facts) *loop.Outcome {
	if bytes, isStub := budget.Size(f.installation); isStub {
		text := fmt.Sprintf("the installation is neither installed nor updated: it would take %d KiB of the manager's memory, and the "+
			"installations of its namespace, or of the seed, already use all memory that they may have", bytes>>10)
		if r.Held.HasSpace(f.installation) {
			text += ": there is enough memory now, and it is read again (resourceVersion " + f.installation.ResourceVersion + ")"
		} else {
			text += ": delete installations, or make their values, labels and annotations smaller"
		}
		return waiting(kubermaticv1.ReasonLimitExceeded, text, clusterRecheck)
	}
	if installation.IsFarWithinShare(r.Held.Of(f.installation.Namespace)) {
		return nil
	}
	all, err := r.installationsOf(ctx, f.of())
	if err != nil {
		return failed(fmt.Errorf("listing the cluster's installations: %w", err))
	}
	older := slices.DeleteFunc(all, func(one kubermaticv1.AddonInstallation) bool { return !installation.IsOlder(&one, f.installation) })
	if err := installation.CheckShare(f.installation, older); err != nil {
		return waiting(kubermaticv1.ReasonLimitExceeded, "the installation is neither installed nor updated: "+err.Error(), clusterRecheck)
	}
	return nil
}

func pausedCluster(paused target.Description) *loop.Outcome {
	return waiting(kubermaticv1.ReasonPaused, fmt.Sprintf("cluster %q is paused: %s", paused.Name, paused.Unpause()), 0)
}

func unknownCluster(err error) *loop.Outcome {
	var unknown *cluster.UnknownError
	if errors.As(err, &unknown) {
		return waiting(kubermaticv1.ReasonClusterUnknown, unknown.Error(), clusterRecheck)
	}
	return failed(err)
}

// adopts ends the reconciliation if annotation adopt-managers is invalid. Adoption without it would leave fields behind
// permanently: an adopted object is not adopted a second time.
func (r *Reconciler) adopts(_ context.Context, f *facts) *loop.Outcome {
	if _, err := installer.AdoptManagers(f.installation.Annotations); err != nil {
		return loop.Stall(kubermaticv1.ConditionApplied, kubermaticv1.ReasonAnnotationInvalid, err.Error())
	}
	return nil
}

// kkpAddonGone waits while KKP has an Addon of the same name in the cluster. KKP applies its objects every few minutes
// and would undo changes, so nothing is done, not even repairs.
func (r *Reconciler) kkpAddonGone(ctx context.Context, f *facts) *loop.Outcome {
	if !f.cluster.IsKKP() {
		return nil
	}
	addon, err := r.Platform.KKPAddon(ctx, f.cluster.Ref, addonOf(f.installation))
	if err != nil {
		return failed(err)
	}
	if addon == nil {
		return nil
	}
	return waiting(kubermaticv1.ReasonKKPAddonExists, kkpAddonText(addon), clusterRecheck)
}

// kkpAddonText is the solution, which depends on the progress of the migration.
func kkpAddonText(addon *metav1.PartialObjectMetadata) string {
	name, deleted := addon.Name, !addon.DeletionTimestamp.IsZero()
	switch {
	case deleted && slices.Contains(addon.Finalizers, cluster.KKPAddonFinalizer):
		return fmt.Sprintf("KKP is removing its Addon %q and the Addon's objects: the installation waits until they are removed; to keep "+
			"the objects, remove finalizer %q from the Addon", name, cluster.KKPAddonFinalizer)
	case deleted:
		return fmt.Sprintf("KKP's Addon %q is being deleted: the installation waits until it is deleted", name)
	}
	return fmt.Sprintf("KKP has an Addon %q in this cluster and keeps applying it: to adopt its objects, pause the Cluster, remove "+
		"finalizer %q from the Addon, delete it, annotate the installation with %s: \"true\" and unpause the Cluster (if it is a default "+
		"add-on, also remove it from KKP's list); or delete the Addon alone, so that KKP removes its objects first",
		name, cluster.KKPAddonFinalizer, kubermaticv1.AnnotationAdopt)
}
