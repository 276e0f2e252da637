package addon

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// offers hold the present merged catalogue, parsed, and what was decided from it: once for each distinct Kubernetes
// version, whatever the number of clusters. The KKP version is the same for the whole seed.
type offers struct {
	mutex       sync.Mutex
	loaded      bool
	entries     map[types.UID]knownEntry
	list        []*catalogue.Entry
	kkpVersion  string
	preReleases bool
	byVersion   map[string]*catalogue.Availability
	// decisions counts what was decided, for benchmarks.
	decisions int
}

type knownEntry struct {
	version string
	entry   *catalogue.Entry
}

// to is what clusters with that Kubernetes version are offered; nil before the first load.
func (o *offers) to(k8sVersion string) (*catalogue.Availability, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if !o.loaded {
		return nil, nil
	}
	return o.decide(k8sVersion)
}

func (o *offers) decide(k8sVersion string) (*catalogue.Availability, error) {
	if known, ok := o.byVersion[k8sVersion]; ok {
		return known, nil
	}
	decided, err := catalogue.Available(o.list, platformOf(o.kkpVersion, k8sVersion, o.preReleases))
	if err != nil {
		return nil, fmt.Errorf("deciding for Kubernetes %q: %w", k8sVersion, err)
	}
	o.decisions++
	o.byVersion[k8sVersion] = &decided
	return &decided, nil
}

// load takes up the merged catalogues, and returns the Kubernetes versions out of those in use whose offer changed.
func (o *offers) load(entries map[types.UID]knownEntry, inUse map[string]bool) (changed map[string]bool, err error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	before := o.byVersion
	first := !o.loaded
	o.entries, o.list, o.loaded = entries, nil, true
	for _, known := range entries {
		o.list = append(o.list, known.entry)
	}
	o.kkpVersion = platformVersion(o.list)
	o.byVersion = make(map[string]*catalogue.Availability, len(inUse))
	changed = map[string]bool{}
	for version := range inUse {
		decided, err := o.decide(version)
		if err != nil {
			return nil, err
		}
		if was := before[version]; first || was == nil || was.Digest != decided.Digest {
			changed[version] = true
		}
	}
	return changed, nil
}

// known gives the entries as they were loaded last.
func (o *offers) known() map[types.UID]knownEntry {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.entries
}

// platformVersion is the KKP version that most merged objects are stamped with: while a new one is being distributed they
// differ for a moment, and one that can't be written any more keeps its old stamp.
func platformVersion(entries []*catalogue.Entry) string {
	counts := map[string]int{}
	for _, entry := range entries {
		counts[entry.KKPVersion]++
	}
	versions := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(b, a))
	})
	if len(versions) == 0 {
		return ""
	}
	return versions[0]
}

// reconcileCatalogue looks at all merged catalogues and asks for the clusters whose offer changed.
func (r *Reconciler) reconcileCatalogue(ctx context.Context, _ reconcile.Request) (ctrl.Result, error) {
	var merged v1.AddonCatalogueList
	// Objects are shared with the cache and only read.
	err := r.Client.List(ctx, &merged, client.InNamespace(r.Options.CatalogueNamespace),
		client.MatchingLabels{v1.LabelRole: v1.RoleMerged}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("listing merged AddonCatalogues: %w", err)
	}
	var clusters kkpv1.ClusterList
	if err := r.Client.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing Clusters: %w", err)
	}
	inUse := map[string]bool{}
	for i := range clusters.Items {
		if r.handles(&clusters.Items[i]) {
			inUse[clusters.Items[i].Status.Versions.ControlPlane] = true
		}
	}
	changed, err := r.offers.load(r.readEntries(ctx, merged.Items), inUse)
	if err != nil {
		return ctrl.Result{}, err
	}
	// Without a queue the other controller has not begun yet: it will come to all clusters, and find what is loaded now.
	if clustersQueue := r.clusters.Load(); clustersQueue != nil {
		r.ask(*clustersQueue, clusters.Items, changed)
	}
	return ctrl.Result{}, nil
}

// readEntries parses what is new. An object that is no merged catalogue is passed over: the distributor puts it right.
func (r *Reconciler) readEntries(ctx context.Context, merged []v1.AddonCatalogue) map[types.UID]knownEntry {
	before, now := r.offers.known(), make(map[types.UID]knownEntry, len(merged))
	for i := range merged {
		object := &merged[i]
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

func (r *Reconciler) ask(q queue, clusters []kkpv1.Cluster, changed map[string]bool) {
	for i := range clusters {
		found := &clusters[i]
		if r.handles(found) && changed[found.Status.Versions.ControlPlane] {
			q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: found.Name}})
		}
	}
}
