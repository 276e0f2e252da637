package addoninstallation

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/helmrelease"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/removal"
	"github.com/trellis-addons/trellis/pkg/text"
)

// Taking over what was there before: KKP's own add-ons and Helm releases.

// kkpAddonGone waits while KKP has an Addon of the add-on's name in the cluster: KKP applies its objects every few minutes, and
// would take back what is taken over. Nothing at all is done meanwhile, not even repairs: each would be undone.
func (r *Reconciler) kkpAddonGone(ctx context.Context, f *facts) loop.Outcome {
	name := addonOf(f)
	addon, err := r.Platform.KKPAddon(ctx, f.cluster.Ref, name)
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

// helmReleaseFree looks, before the first write, whether the user cluster has a Helm release of the name that no record of ours
// knows. Without annotation adopt that is a refusal; with it, the release is to be gone on with. What an installation of our name
// left behind is gone on with in any case, and what one has that still exists never.
func (r *Reconciler) helmReleaseFree(ctx context.Context, f *facts) loop.Outcome {
	name := releaseName(f)
	if name == "" {
		return nil
	}
	if known := previousHelm(f); known != nil && known.Name == name {
		return r.byHandBefore(ctx, f, known)
	}
	found, err := helmrelease.Find(ctx, r.helmPlace(f, f.installation.Spec.TargetNamespace), name, f.owner)
	if err != nil {
		return r.remoteFailed(f, kubermaticv1.ConditionApplied, err)
	}
	if found != nil && found.Installation != "" {
		return releaseTaken(found.Installation, name, found.Namespace)
	}
	if found == nil || found.Own || f.adopts() {
		f.foreign = found
		return nil
	}
	f.obstacle = &apply.Obstacle{Key: ownership.Key{Kind: "Secret", Namespace: found.Namespace, Name: found.Secret}}
	return loop.Waiting{
		Condition: kubermaticv1.ConditionApplied, Reason: kubermaticv1.ReasonReleaseNameTaken, Recheck: refusedRecheck,
		Message: fmt.Sprintf("the user cluster has a Helm release %q in namespace %q that is somebody else's (revision %d): uninstall it, "+
			"choose another template.helm.releaseName in the catalogue, or annotate the installation with %s: \"true\" to go on with it",
			name, found.Namespace, found.Revision, kubermaticv1.AnnotationAdopt),
	}
}

func (r *Reconciler) helmPlace(f *facts, namespace string) helmrelease.Place {
	return helmrelease.Place{
		Metadata: f.connection.Metadata, Secrets: f.connection.Secrets.Secrets(namespace), Namespace: namespace,
		NameOf: r.namesIn(f.installation.Namespace, f.owner.ClusterUID),
		Names:  r.views.helmNamesOf(f.place(), r.Options.DriftInterval),
	}
}

// takeOver finds what the Helm release that is gone on with has and the add-on has not. It is pruned like what an earlier
// revision of ours had, with the same guards; without annotation adopt nobody asked for that, and it stays.
func (r *Reconciler) takeOver(ctx context.Context, f *facts) loop.Outcome {
	if f.foreign == nil || !f.foreign.ByHand && !f.adopts() {
		return nil
	}
	if f.foreign.ByHand {
		left, err := r.leftBy(ctx, f, f.foreign, f.record().Superseded)
		if err != nil {
			logHands(ctx, err)
			return nil
		}
		left = left[:min(len(left), max(0, ownership.MaxObjects-len(f.record().Superseded)))]
		f.leftovers = removal.Prunable(left, f.record().Inventory) // what the revision before had is pruned with it
		return nil
	}
	left, err := removal.Leftovers(ctx, f.target(), f.foreign.Objects, removal.LeftoverOptions{
		Owner: f.owner, Marks: f.foreign.Marks(), Wanted: f.objects, NameOf: r.namesIn(f.installation.Namespace, f.owner.ClusterUID),
	})
	if err != nil {
		return r.remoteFailed(f, kubermaticv1.ConditionApplied, err)
	}
	f.leftovers = left
	return nil
}

// tellTakeOver says once, when it is on record, what was there and what becomes of it.
func (r *Reconciler) tellTakeOver(f *facts, found *helmrelease.Foreign, left ownership.Inventory) {
	if found == nil {
		return
	}
	if found.Problem != "" {
		shown := "Secret %q of Helm release %q is not believed, since %s: objects that only it has stay where they are"
		if len(found.Objects) > 0 {
			shown = "Secret %q of Helm release %q can't be read in whole, since %s: objects that only the rest of it has stay where they are"
		}
		r.Recorder.Eventf(f.installation, nil, "Warning", kubermaticv1.EventReleaseUnreadable, "Adopt", shown,
			found.Secret, found.Name, found.Problem)
	}
	if found.ByHand {
		r.tellByHand(f, found, left)
		return
	}
	shown := "every object of it is part of the add-on"
	switch {
	case !f.adopts():
		shown = "it was left behind by an installation of this name, and objects that only it has stay"
	case len(left) > 0:
		shown = "no longer part of the add-on, to be pruned: " + text.Names(keyTexts(left), mostNamed)
	}
	r.Recorder.Eventf(f.installation, nil, "Normal", kubermaticv1.EventAdopted, "Adopt",
		"Helm release %q in namespace %q goes on after its revision %d; %s", found.Name, found.Namespace, found.Revision, shown)
}

func keyTexts(entries ownership.Inventory) []string {
	texts := make([]string, len(entries))
	for i, entry := range entries {
		texts[i] = entry.Key.String()
	}
	return texts
}

// ofKKPAddon are the installations of the add-on that an Addon of KKP stands for.
func (r *Reconciler) ofKKPAddon(ctx context.Context, change cluster.Change) []reconcile.Request {
	return r.requests(ctx, cluster.InstallationsOf(change.Cluster), client.MatchingFields{indexAddon: change.Name})
}
