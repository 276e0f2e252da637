// Package wiring makes controllers from a manager. The programs add the parts that their flags configure, and tests add
// counters and faults, so that the tested controllers are those that run. It is below cmd, since wiring belongs
// there, and not internal to it, since tests are elsewhere.
package wiring

import (
	"context"
	"errors"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/budget"
	"github.com/trellis-addons/trellis/pkg/base/sharing"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/controllers/addon"
	"github.com/trellis-addons/trellis/pkg/controllers/addonset"
	"github.com/trellis-addons/trellis/pkg/controllers/clusterupgrade"
	"github.com/trellis-addons/trellis/pkg/controllers/coreaddon"
	"github.com/trellis-addons/trellis/pkg/controllers/sourcecheck"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/install/resolution"
	"github.com/trellis-addons/trellis/pkg/serve/query"
)

// Scheme knows every kind that Trellis reads or writes.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(kubermaticv1.AddToScheme(scheme))
	utilruntime.Must(cluster.AddToScheme(scheme))
	return scheme
}

// Installations bounds the AddonInstallations that a seed's manager keeps in memory.
type Installations = budget.Budget[kubermaticv1.AddonInstallation, *kubermaticv1.AddonInstallation]

// NewInstallations makes the bound of one manager.
func NewInstallations() *Installations {
	return budget.New[kubermaticv1.AddonInstallation](installation.Budget())
}

// Cache returns the options of a manager's cache: it keeps only parts of some kinds, no managed fields, and of
// AddonInstallations, within their bound, equal parts once.
func Cache(held map[client.Object]cache.ByObject, installations *Installations) cache.Options {
	share := sharing.NewInstallations()
	transform := func(object any) (any, error) {
		object, err := installations.Transform(object)
		if err != nil {
			return nil, err
		}
		return share.Transform(object)
	}
	return cache.Options{DefaultTransform: transform, ByObject: held}
}

// HeldOnSeeds are the catalogues in a manager's cache on a seed: the merged ones only, since there is also an
// available one for each cluster. Of AddonSets it has the copies.
func HeldOnSeeds(catalogueNamespace string) map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&kubermaticv1.AddonCatalogue{}: {Namespaces: map[string]cache.Config{catalogueNamespace: {}}},
		&kubermaticv1.AddonSet{}:       {Namespaces: map[string]cache.Config{catalogueNamespace: {}}},
	}
}

// FurtherCache is a cache in addition to the manager's own, of the same API server, for kinds that the other does not
// have, or has in another form.
func FurtherCache(
	made manager.Manager, held map[client.Object]cache.ByObject, change ...func(*cache.Options),
) (cache.Cache, error) {
	options := cache.Options{
		Scheme: made.GetScheme(), Mapper: made.GetRESTMapper(), HTTPClient: made.GetHTTPClient(), ByObject: held,
	}
	for _, change := range change {
		change(&options)
	}
	return cache.New(made.GetConfig(), options)
}

// HeldForQueries is the cache that the query endpoint reads beside the manager's own: hashes of subjects of RoleBindings, and condition
// AddonsReady of available catalogues.
func HeldForQueries(ctx context.Context, made manager.Manager) (cache.Cache, error) {
	held, err := FurtherCache(made, map[client.Object]cache.ByObject{
		&rbacv1.RoleBinding{}:          {Transform: query.TrimBinding},
		&kubermaticv1.AddonCatalogue{}: cluster.HeldAvailable(query.TrimAvailable),
	})
	if err != nil {
		return nil, fmt.Errorf("creating the cache of the query endpoint: %w", err)
	}
	_, err = held.GetInformer(ctx, &kubermaticv1.AddonCatalogue{}, cache.BlockUntilSynced(false))
	return held, errors.Join(err, made.Add(held))
}

// Seed is a manager on a seed, with the finder of the clusters that it serves.
type Seed struct {
	manager.Manager
	Clusters *cluster.Finders
	// Held bounds its installations.
	Held *Installations
}

// NewSeed finds clusters of these kinds, as long as the manager runs.
func NewSeed(ctx context.Context, made manager.Manager, held *Installations, kinds cluster.Kinds) (Seed, error) {
	none := Seed{}
	planes, err := FurtherCache(made, nil, func(options *cache.Options) { options.DefaultTransform = cluster.TrimControlPlane })
	if err != nil {
		return none, fmt.Errorf("creating the cache of control planes: %w", err)
	}
	seen, err := FurtherCache(made, nil, func(options *cache.Options) { options.DefaultTransform = cluster.PackObject })
	if err != nil {
		return none, fmt.Errorf("creating the cache of objects for templates: %w", err)
	}
	finder, err := cluster.NewFinders(ctx, made, cluster.Caches{ControlPlanes: planes, Seen: seen}, kinds)
	if err != nil {
		return none, err
	}
	return Seed{Manager: made, Clusters: finder, Held: held}, errors.Join(made.Add(planes), made.Add(seen), made.Add(finder))
}

// Addon returns the dependencies of controller addon.
func Addon(made Seed, marks *mergedcatalogue.Marks, options addon.Options) addon.Dependencies {
	return addon.Dependencies{
		Client: made.GetClient(), Marks: marks, Reader: made.GetAPIReader(), Finder: made.Clusters,
		Recorder: made.GetEventRecorder("addon"), Options: options,
	}
}

// CoreAddon returns the dependencies of controller coreaddon.
func CoreAddon(made Seed, marks *mergedcatalogue.Marks, options coreaddon.Options) coreaddon.Dependencies {
	finder := made.Clusters
	return coreaddon.Dependencies{
		Client: made.GetClient(), Marks: marks, Reader: made.GetAPIReader(), Finder: finder, Live: finder,
		Recorder: made.GetEventRecorder("coreaddon"), Options: options,
	}
}

// ClusterUpgrade returns the dependencies of controller clusterupgrade, with the core list.
func ClusterUpgrade(
	made Seed, marks *mergedcatalogue.Marks, core clusterupgrade.CoreList, options clusterupgrade.Options,
) clusterupgrade.Dependencies {
	return clusterupgrade.Dependencies{
		Client: made.GetClient(), Marks: marks, Reader: made.GetAPIReader(), Finder: made.Clusters, Holder: made.Clusters,
		CoreList: core, Recorder: made.GetEventRecorder("clusterupgrade"), Options: options,
	}
}

// AddonSet returns the dependencies of controller addonset.
func AddonSet(made Seed, marks *mergedcatalogue.Marks, options addonset.Options) addonset.Dependencies {
	finder := made.Clusters
	return addonset.Dependencies{
		Client: made.GetClient(), Marks: marks, Reader: made.GetAPIReader(), Finder: finder, Live: finder,
		Recorder: made.GetEventRecorder("addonset"), Options: options,
	}
}

// SourceCheck returns the dependencies of controller sourcecheck.
func SourceCheck(
	made Seed, marks *mergedcatalogue.Marks, content sourcecheck.Store, references resolution.References, options sourcecheck.Options,
) sourcecheck.Dependencies {
	return sourcecheck.Dependencies{
		Client: made.GetClient(), Reader: made.GetAPIReader(), Marks: marks, Source: references.Source, Store: content, Options: options,
	}
}
