package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/pkg/base/fairqueue"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/controllers/addon"
	"github.com/trellis-addons/trellis/pkg/controllers/addoninstallation"
	"github.com/trellis-addons/trellis/pkg/controllers/addonset"
	"github.com/trellis-addons/trellis/pkg/controllers/clusterupgrade"
	"github.com/trellis-addons/trellis/pkg/controllers/coreaddon"
	"github.com/trellis-addons/trellis/pkg/controllers/sourcecheck"
	"github.com/trellis-addons/trellis/pkg/controllers/standalone"
	"github.com/trellis-addons/trellis/pkg/fetch/store"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/install/resolution"
	"github.com/trellis-addons/trellis/pkg/install/revision"
)

// seed has what the controllers and endpoints of a seed have in common.
type seed struct {
	wiring.Seed
	// direct reads and writes before the manager's caches run.
	direct     client.Client
	marks      *mergedcatalogue.Marks
	identities *cluster.Identities
	options    *options
	previews   *addoninstallation.Previewer
	sets       *addonset.Reconciler
}

// wire makes the controllers and adds them to the manager.
func wire(ctx context.Context, made manager.Manager, held *wiring.Installations, options *options, logger logr.Logger) error {
	found, err := wiring.NewSeed(ctx, made, held, options.clusters.kinds())
	if err != nil {
		return err
	}
	direct, err := client.New(made.GetConfig(), client.Options{Scheme: made.GetScheme(), HTTPClient: made.GetHTTPClient()})
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	s := &seed{Seed: found, direct: direct, options: options}
	s.identities = cluster.NewIdentities(made.GetClient(), made.GetAPIReader(), found.Clusters, options.Namespace)
	if options.Standalone {
		logger.Info("running without KKP: this manager creates cluster namespaces and writes the status of Clusters")
		if err := s.addStandalone(); err != nil {
			return fmt.Errorf("setting up controller standalone: %w", err)
		}
	}
	if s.marks, err = s.newMarks(ctx); err != nil {
		return err
	}
	if err := s.addOffers(); err != nil {
		return fmt.Errorf("setting up controller addon: %w", err)
	}
	core, err := s.addCore()
	if err != nil {
		return fmt.Errorf("setting up controller coreaddon: %w", err)
	}
	if err := s.addSets(core); err != nil {
		return fmt.Errorf("setting up controller addonset: %w", err)
	}
	if err := s.addUpgrades(core); err != nil {
		return fmt.Errorf("setting up controller clusterupgrade: %w", err)
	}
	if err := s.addInstallations(ctx); err != nil {
		return fmt.Errorf("setting up controller addoninstallation: %w", err)
	}
	if err := s.addQuery(ctx); err != nil {
		return fmt.Errorf("setting up the query endpoint: %w", err)
	}
	return s.admit()
}

func (s *seed) addStandalone() error {
	return standalone.New(standalone.Dependencies{
		Client: s.GetClient(), Reader: s.GetAPIReader(), Identities: s.identities, WorkerName: s.options.WorkerName,
	}).SetupWithManager(s)
}

func (s *seed) addOffers() error {
	dependencies := wiring.Addon(s.Seed, s.marks, addon.Options{
		CatalogueNamespace: s.options.CatalogueNamespace, WorkerName: s.options.WorkerName, AllowPrereleases: s.options.allowPrereleases,
	})
	dependencies.Metrics = addon.NewMetrics(metrics.Registry)
	return addon.New(dependencies).SetupWithManager(s)
}

// addCore adds the controller of core add-ons, and its metrics.
func (s *seed) addCore() (*coreaddon.Reconciler, error) {
	controller := coreaddon.New(wiring.CoreAddon(s.Seed, s.marks, coreaddon.Options{
		Namespace: s.options.Namespace, CatalogueNamespace: s.options.CatalogueNamespace, WorkerName: s.options.WorkerName,
		AllowPrereleases: s.options.allowPrereleases,
	}))
	if err := metrics.Registry.Register(controller); err != nil {
		return nil, fmt.Errorf("registering metrics of controller coreaddon: %w", err)
	}
	return controller, controller.SetupWithManager(s)
}

// addSets adds the controller of AddonSets, and the metrics of all sets.
func (s *seed) addSets(core *coreaddon.Reconciler) error {
	dependencies := wiring.AddonSet(s.Seed, s.marks, addonset.Options{
		CatalogueNamespace: s.options.CatalogueNamespace, WorkerName: s.options.WorkerName, AllowPrereleases: s.options.allowPrereleases,
	})
	dependencies.Core = core.SetFigures
	controller := addonset.New(dependencies)
	if err := metrics.Registry.Register(controller); err != nil {
		return fmt.Errorf("registering metrics of controller addonset: %w", err)
	}
	s.sets = controller
	return controller.SetupWithManager(s)
}

// addUpgrades adds the controller that holds upgrades of Cluster API's Clusters, and removes its holds.
func (s *seed) addUpgrades(core *coreaddon.Reconciler) error {
	if !s.options.clusters.has(kindClusterAPI) {
		return nil
	}
	dependencies := wiring.ClusterUpgrade(s.Seed, s.marks, core.Listed, clusterupgrade.Options{
		CatalogueNamespace: s.options.CatalogueNamespace, WorkerName: s.options.WorkerName, AllowPrereleases: s.options.allowPrereleases,
		Rules: s.options.clusters.upgrades,
	})
	controller := clusterupgrade.New(dependencies)
	if err := metrics.Registry.Register(controller); err != nil {
		return fmt.Errorf("registering metrics of controller clusterupgrade: %w", err)
	}
	return controller.SetupWithManager(s)
}

func (s *seed) addInstallations(ctx context.Context) error {
	kinds := s.options.sources.Kinds()
	content, err := s.options.sources.Store(store.Options{Kinds: kinds, Interval: s.options.sourceInterval})
	if err != nil {
		return err
	}
	key, err := revision.LoadOrCreateInputsKey(ctx, s.direct, s.options.Namespace)
	if err != nil {
		return err
	}
	renders, err := newRenders(s, &s.options.rendering)
	if err != nil {
		return err
	}
	rules, err := s.options.templates.images()
	if err != nil {
		return err
	}
	agents, err := s.options.agents.access()
	if err != nil {
		return err
	}
	records := wiring.Records(s, key)
	dependencies, err := wiring.AddonInstallation(ctx, s.Seed, s.marks, wiring.InstallationParts{
		Namespace: s.options.Namespace, Identities: s.identities, Fence: s.options.Fence, SourceKinds: kinds, Store: content,
		AllowCIDRs: s.options.clusters.allowCIDRs,
		Registry:   metrics.Registry, Renders: renders, Images: rules, PullSecret: rules.PullSecret,
		ProviderKinds: s.options.templates.providerKinds, Records: records, InputsKey: key, Agents: agents,
		Options: addoninstallation.Options{
			CatalogueNamespace: s.options.CatalogueNamespace, DriftInterval: s.options.driftInterval,
			OrderTimeout:     s.options.orderTimeout,
			AllowPrereleases: s.options.allowPrereleases, Restrictions: s.options.restrictions, WorkerName: s.options.WorkerName,
			Limits: fairqueue.Limits{Workers: s.options.concurrency}, Variables: s.options.templates.variables,
		},
	})
	if err != nil {
		return err
	}
	dependencies.QueueMetrics = fairqueue.NewMetrics(metrics.Registry)
	dependencies.Metrics = addoninstallation.NewMetrics(metrics.Registry)
	if err := errors.Join(
		metrics.Registry.Register(addoninstallation.NewCensus(s.GetClient(), s.Elected())),
		metrics.Registry.Register(addoninstallation.NewAddonCensus(s.GetClient(), s.Elected())),
		metrics.Registry.Register(addoninstallation.NewUpdateCensus(s.GetClient(), s.Elected())),
		metrics.Registry.Register(addoninstallation.NewAccessCensus(s.GetClient(), s.Elected())),
		metrics.Registry.Register(addoninstallation.NewFirstEnd(s.GetClient(), s.Elected())),
	); err != nil {
		return fmt.Errorf("registering metrics of installations: %w", err)
	}
	// The leader removes the identities of deleted Clusters, and seals records of another key again.
	if err := errors.Join(s.Add(s.identities), s.Add(records.SealAgain(s.options.Namespace, key))); err != nil {
		return err
	}
	if err := s.addChecks(dependencies); err != nil {
		return fmt.Errorf("setting up controller sourcecheck: %w", err)
	}
	s.previews = addoninstallation.NewPreviewer(dependencies)
	return addoninstallation.New(dependencies).SetupWithManager(s)
}

// addChecks adds the controller that checks sources before they are installed.
func (s *seed) addChecks(of addoninstallation.Dependencies) error {
	if !s.options.checkSources {
		return nil
	}
	content, err := s.options.sources.Checks()
	if err != nil {
		return err
	}
	if err := s.Add(content); err != nil {
		return err
	}
	dependencies := wiring.SourceCheck(s.Seed, s.marks, content, resolution.References{
		Secret: addoninstallation.ReadMarkedSecret(of.Marked, of.Direct), SourceKinds: of.SourceKinds,
		CatalogueNamespace: s.options.CatalogueNamespace,
	}, sourcecheck.Options{Namespace: s.options.Namespace, CatalogueNamespace: s.options.CatalogueNamespace})
	if dependencies.Trial, err = newTrial(s, &s.options.rendering); err != nil {
		return err
	}
	return sourcecheck.New(dependencies).SetupWithManager(s)
}
