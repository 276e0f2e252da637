package addoninstallation

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/loop"
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

// ofKKPAddon are the installations of the add-on that an Addon of KKP stands for.
func (r *Reconciler) ofKKPAddon(ctx context.Context, change cluster.Change) []reconcile.Request {
	return r.requests(ctx, client.InNamespace(change.Cluster.Namespace), client.MatchingFields{indexAddon: change.Name})
}
