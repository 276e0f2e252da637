// Package wiring puts controllers together out of a manager. The programs beside it add what their
// flags say, and tests what they count or break, so that what is tested is what runs. It is below
// cmd, whose job wiring is, and not internal to it, since tests are elsewhere.
package wiring

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/budget"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/controllers/addon"
	"github.com/trellis-addons/trellis/pkg/controllers/addonset"
	"github.com/trellis-addons/trellis/pkg/controllers/clusterupgrade"
	"github.com/trellis-addons/trellis/pkg/controllers/coreaddon"
	"github.com/trellis-addons/trellis/pkg/controllers/sourcecheck"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/git"
	"github.com/trellis-addons/trellis/pkg/fetch/helmrepo"
	"github.com/trellis-addons/trellis/pkg/fetch/image"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
	"github.com/trellis-addons/trellis/pkg/installation"
	"github.com/trellis-addons/trellis/pkg/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/resolution"
	"github.com/trellis-addons/trellis/pkg/sharing"
)

// Scheme knows every kind that Trellis reads or writes.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(kubermaticv1.AddToScheme(scheme))
	utilruntime.Must(cluster.AddToScheme(scheme))
	return scheme
}

// Installations bounds what a seed's manager holds of AddonInstallations.
type Installations = budget.Budget[kubermaticv1.AddonInstallation, *kubermaticv1.AddonInstallation]

// NewInstallations makes the bound of one manager.
func NewInstallations() *Installations {
	return budget.New[kubermaticv1.AddonInstallation](installation.Budget())
}

// Cache is what a manager's cache holds: some kinds in part only, of none who manages its fields, and
// of AddonInstallations, within their bound, once what they have alike.
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

// HeldOnSeeds is what a manager's cache on a seed holds of catalogues: the merged ones only. There
// is an available one for each cluster besides. Of AddonSets it holds the copies.
func HeldOnSeeds(catalogueNamespace string) map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&kubermaticv1.AddonCatalogue{}: {Namespaces: map[string]cache.Config{catalogueNamespace: {}}},
		&kubermaticv1.AddonSet{}:       {Namespaces: map[string]cache.Config{catalogueNamespace: {}}},
	}
}

// FurtherCache is a cache beside the manager's own, of the same API server, for kinds that are not
// held there, or not so.
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

// SourceKinds are the kinds of source that are served. A further kind comes in here.
func SourceKinds(network *outbound.Network) fetch.Kinds {
	return fetch.NewKinds(fetch.Serve(git.New(network)), fetch.Serve(image.New(network)), fetch.Serve(helmrepo.New(network)))
}

// Seed is a manager on a seed, and what finds the clusters that it serves.
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
		return none, fmt.Errorf("making the cache of control planes: %w", err)
	}
	seen, err := FurtherCache(made, nil, func(options *cache.Options) { options.DefaultTransform = cluster.PackObject })
	if err != nil {
		return none, fmt.Errorf("making the cache of what templates see: %w", err)
	}
	finder, err := cluster.NewFinders(ctx, made, cluster.Caches{ControlPlanes: planes, Seen: seen}, kinds)
	if err != nil {
		return none, err
	}
	return Seed{Manager: made, Clusters: finder, Held: held}, errors.Join(made.Add(planes), made.Add(seen), made.Add(finder))
}

// Addon are what controller addon works with.
func Addon(made Seed, marks *mergedcatalogue.Marks, options addon.Options) addon.Dependencies {
	return addon.Dependencies{
		Client: made.GetClient(), Marks: marks, Reader: made.GetAPIReader(), Finder: made.Clusters,
		Recorder: made.GetEventRecorder("addon"), Options: options,
	}
}

// CoreAddon are what controller coreaddon works with.
func CoreAddon(made Seed, marks *mergedcatalogue.Marks, options coreaddon.Options) coreaddon.Dependencies {
	finder := made.Clusters
	return coreaddon.Dependencies{
		Client: made.GetClient(), Marks: marks, Reader: made.GetAPIReader(), Finder: finder, Live: finder,
		Recorder: made.GetEventRecorder("coreaddon"), Options: options,
	}
}

// ClusterUpgrade are what controller clusterupgrade works with, beside what knows the core list.
func ClusterUpgrade(
	made Seed, marks *mergedcatalogue.Marks, core clusterupgrade.CoreList, options clusterupgrade.Options,
) clusterupgrade.Dependencies {
	return clusterupgrade.Dependencies{
		Client: made.GetClient(), Marks: marks, Reader: made.GetAPIReader(), Finder: made.Clusters, Holder: made.Clusters,
		CoreList: core, Recorder: made.GetEventRecorder("clusterupgrade"), Options: options,
	}
}

// AddonSet are what controller addonset works with.
func AddonSet(made Seed, marks *mergedcatalogue.Marks, options addonset.Options) addonset.Dependencies {
	finder := made.Clusters
	return addonset.Dependencies{
		Client: made.GetClient(), Marks: marks, Reader: made.GetAPIReader(), Finder: finder, Live: finder,
		Recorder: made.GetEventRecorder("addonset"), Options: options,
	}
}

// SourceCheck are what controller sourcecheck works with.
func SourceCheck(
	made Seed, marks *mergedcatalogue.Marks, content sourcecheck.Store, references resolution.References, options sourcecheck.Options,
) sourcecheck.Dependencies {
	return sourcecheck.Dependencies{
		Client: made.GetClient(), Reader: made.GetAPIReader(), Marks: marks, Source: references.Source, Store: content, Options: options,
	}
}
