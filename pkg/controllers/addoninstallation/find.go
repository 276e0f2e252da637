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
	"github.com/trellis-addons/trellis/pkg/budget"
	"github.com/trellis-addons/trellis/pkg/cluster"
	order "github.com/trellis-addons/trellis/pkg/installation"
	"github.com/trellis-addons/trellis/pkg/installer"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/target"
)

// clusterRecheck is how often a missing or unready Cluster is searched, besides its events.
const clusterRecheck = time.Minute

// locate finds the Cluster that the installation is for, and what depends on it: every pass begins
// with that, a removal too. A Cluster that comes back over the same user cluster has the same IDs
// as before.
func (r *Reconciler) locate(ctx context.Context, f *facts) error {
	f.pass.Now = r.Clock.Now()
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
	f.pass.Cluster, f.pass.ClusterOwner = found.Ref, found.Owner
	f.pass.Seed.NameOf = func(origin types.UID, id string) string { return r.nameOf(found, origin, id) }
	f.pass.Owner = ownership.Owner{ClusterUID: origin, Installation: f.installation.Name}
	f.memory.belongTo(f.pass.Owner)
	f.pass.Refusals = f.memory.refusals
	return nil
}

// findCluster finds the Cluster of a living installation.
// The Cluster's identity goes into the status, with whatever the pass says there; until that is
// written, release records have it. Of core add-ons, and where another Cluster came, it is written
// before anything else happens: their protection, and a removal that finds no Cluster, go by the
// status.
func (r *Reconciler) findCluster(ctx context.Context, f *facts) loop.Outcome {
	if err := r.locate(ctx, f); err != nil {
		return unknownCluster(err)
	}
	if !cluster.BelongsTo(f.cluster, r.Options.WorkerName) {
		return loop.NotMine{}
	}
	identity := f.cluster.Identity()
	known := f.installation.Status.Cluster
	if cluster.GoesWithFormer(f.cluster.Ref, f.installation) {
		return waiting(kubermaticv1.ReasonRemoving, fmt.Sprintf("it goes with the former Cluster %q", f.cluster.Name), clusterRecheck)
	}
	f.identity = &identity
	if known == nil && f.installation.Spec.CoreAddon || known != nil && *known != identity {
		return checkpoint(kubermaticv1.ConditionReady, fmt.Sprintf("it belongs to cluster %q", f.cluster.Name))
	}
	if f.cluster.Deleted {
		return cmp.Or(r.part(ctx, f), goingOutcome(f))
	}
	return nil
}

// unpaused says whether anything is to be done in the cluster.
func (r *Reconciler) unpaused(_ context.Context, f *facts) loop.Outcome {
	switch {
	case f.cluster.Paused:
		f.pass.Lost()
		return pausedCluster(f.cluster)
	case f.installation.Spec.Paused:
		f.pass.Lost()
		return waiting(kubermaticv1.ReasonPaused, "the installation is paused: set spec.paused to false to go on", 0)
	case f.cluster.KubernetesVersion == "":
		return waiting(kubermaticv1.ReasonClusterNotReady, fmt.Sprintf("cluster %q has no version yet", f.cluster.Name), clusterRecheck)
	}
	return nil
}

// withinShare neither installs nor updates what is beyond the share that one cluster has of the seed: the newest are. Admission refuses it
// first, where it is asked. The same goes for what the manager has no room for in memory. Once there is room its status changes, and the
// cache gets the whole of it by that. What is installed is maintained.
func (r *Reconciler) withinShare(ctx context.Context, f *facts) loop.Outcome {
	if bytes, isStub := budget.Size(f.installation); isStub {
		text := fmt.Sprintf("it is neither installed nor updated: it takes %d KiB of the manager's memory, and the installations of its "+
			"namespace, or of the seed, take all that there is for them", bytes>>10)
		if r.Held.HasRoom(f.installation) {
			text += ": there is room now, and it is read again (resourceVersion " + f.installation.ResourceVersion + ")"
		} else {
			text += ": delete installations, or make their values, labels and annotations smaller"
		}
		return waiting(kubermaticv1.ReasonLimitExceeded, text, clusterRecheck)
	}
	if order.IsFarWithinShare(r.Held.Of(f.installation.Namespace)) {
		return nil
	}
	all, err := r.installationsOf(ctx, f.of())
	if err != nil {
		return failed(fmt.Errorf("listing the cluster's installations: %w", err))
	}
	older := slices.DeleteFunc(all, func(one kubermaticv1.AddonInstallation) bool { return !order.IsOlder(&one, f.installation) })
	if err := order.CheckShare(f.installation, older); err != nil {
		return waiting(kubermaticv1.ReasonLimitExceeded, "it is neither installed nor updated: "+err.Error(), clusterRecheck)
	}
	return nil
}

func pausedCluster(paused target.Description) loop.Outcome {
	return waiting(kubermaticv1.ReasonPaused, fmt.Sprintf("cluster %q is paused: %s", paused.Name, paused.Unpause()), 0)
}

func unknownCluster(err error) loop.Outcome {
	var unknown *cluster.UnknownError
	if errors.As(err, &unknown) {
		return waiting(kubermaticv1.ReasonClusterUnknown, unknown.Error(), clusterRecheck)
	}
	return failed(err)
}

// adopts ends the pass where annotation adopt-managers can't be followed. To adopt without it leaves
// fields behind for good: what is taken over once is not taken over again.
func (r *Reconciler) adopts(_ context.Context, f *facts) loop.Outcome {
	if _, err := installer.AdoptManagers(f.installation.Annotations); err != nil {
		return loop.Stalled{Condition: kubermaticv1.ConditionApplied, Reason: kubermaticv1.ReasonAnnotationInvalid, Message: err.Error()}
	}
	return nil
}

// kkpAddonGone waits while KKP has an Addon of the add-on's name in the cluster: KKP applies its
// objects every few minutes, and would undo what is done to them. So nothing is done meanwhile, not
// even repairs.
func (r *Reconciler) kkpAddonGone(ctx context.Context, f *facts) loop.Outcome {
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

// kkpAddonText is the way out, which depends on how far somebody went already.
func kkpAddonText(addon *metav1.PartialObjectMetadata) string {
	name, deleted := addon.Name, !addon.DeletionTimestamp.IsZero()
	switch {
	case deleted && slices.Contains(addon.Finalizers, cluster.KKPAddonFinalizer):
		return fmt.Sprintf("KKP is removing its Addon %q and what it applied: it is waited for; take finalizer %q off the Addon to have "+
			"the objects stay", name, cluster.KKPAddonFinalizer)
	case deleted:
		return fmt.Sprintf("KKP's Addon %q is being deleted: it is waited for", name)
	}
	return fmt.Sprintf("KKP has an Addon %q in this cluster and keeps applying it: to take its objects over, pause the Cluster, take "+
		"finalizer %q off the Addon, delete it, annotate the installation with %s: \"true\" and unpause (a default add-on has to leave KKP's "+
		"list besides); or delete the Addon alone to have KKP remove its objects first",
		name, cluster.KKPAddonFinalizer, kubermaticv1.AnnotationAdopt)
}
