package addon

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
)

// reconcileCatalogue reads all merged catalogues and enqueues the clusters whose offer changed.
func (r *Reconciler) reconcileCatalogue(ctx context.Context, _ reconcile.Request) (ctrl.Result, error) {
	var list v1.AddonCatalogueList
	// Objects are shared with the cache and only read.
	err := r.Client.List(ctx, &list, client.InNamespace(r.Options.CatalogueNamespace),
		client.MatchingLabels{v1.LabelRole: v1.RoleMerged}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("listing merged AddonCatalogues: %w", err)
	}
	clusters, err := r.Finder.List(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	inUse := map[platform]bool{}
	for i := range clusters {
		if r.handles(clusters[i]) {
			inUse[platformOf(clusters[i])] = true
		}
	}
	changed, err := r.offers.load(r.readEntries(ctx, list.Items), inUse)
	if err != nil {
		return ctrl.Result{}, err
	}
	// Without a queue the other controller has not started: it will use what is loaded now.
	clustersQueue := r.clusters.Load()
	for _, found := range clusters {
		if clustersQueue != nil && r.handles(found) && changed[platformOf(found)] {
			(*clustersQueue).Add(cluster.Request(found.Ref))
		}
	}
	return ctrl.Result{}, nil
}

// readEntries parses new objects. An object that is no valid merged catalogue is skipped.
func (r *Reconciler) readEntries(ctx context.Context, catalogues []v1.AddonCatalogue) map[types.UID]knownEntry {
	before, now := r.offers.known(), make(map[types.UID]knownEntry, len(catalogues))
	for i := range catalogues {
		object := &catalogues[i]
		if !r.Marks.Believes(object) {
			continue
		}
		if known, ok := before[object.UID]; ok && known.version == object.ResourceVersion {
			now[object.UID] = known
			continue
		}
		entry, err := catalogue.NewEntry(object)
		if err != nil {
			log.FromContext(ctx).Error(err, "a merged catalogue can't be read")
			continue
		}
		now[object.UID] = knownEntry{object.ResourceVersion, entry}
	}
	return now
}
