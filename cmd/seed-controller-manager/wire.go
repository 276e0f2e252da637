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
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/controllers/addon"
	"github.com/trellis-addons/trellis/pkg/controllers/addoninstallation"
	"github.com/trellis-addons/trellis/pkg/controllers/standalone"
	"github.com/trellis-addons/trellis/pkg/fairqueue"
	"github.com/trellis-addons/trellis/pkg/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/revision"
)

// wire puts the controllers together and into the manager.
func wire(ctx context.Context, made manager.Manager, options *options, logger logr.Logger) error {
	if err := cluster.IndexNamespaceName(ctx, made.GetFieldIndexer()); err != nil {
		return fmt.Errorf("indexing clusters: %w", err)
	}
	identities := cluster.NewIdentities(made.GetClient(), made.GetAPIReader(), wiring.Finder(made), options.Namespace)
	if options.Standalone {
		logger.Info("running without KKP: cluster namespaces and status are filled in here")
		if err := addStandalone(made, identities, options); err != nil {
			return fmt.Errorf("setting up controller standalone: %w", err)
		}
	}
	marks, err := newMarks(ctx, made, options.Namespace)
	if err != nil {
		return err
	}
	if err := addOffers(made, marks, options); err != nil {
		return fmt.Errorf("setting up controller addon: %w", err)
	}
	if err := addCore(made, marks, options); err != nil {
		return fmt.Errorf("setting up controller coreaddon: %w", err)
	}
	if err := addInstallations(ctx, made, marks, identities, options); err != nil {
		return fmt.Errorf("setting up controller addoninstallation: %w", err)
	}
	if err := addQuery(ctx, made, marks, options); err != nil {
		return fmt.Errorf("setting up the query endpoint: %w", err)
	}
	return admit(made, marks, options)
}

func addStandalone(made manager.Manager, identities *cluster.Identities, options *options) error {
	return standalone.New(standalone.Dependencies{
		Client: made.GetClient(), Reader: made.GetAPIReader(), Identities: identities, WorkerName: options.WorkerName,
	}).SetupWithManager(made)
}

func addOffers(made manager.Manager, marks *mergedcatalogue.Marks, options *options) error {
	dependencies := wiring.Addon(made, marks, addon.Options{
		CatalogueNamespace: options.CatalogueNamespace, WorkerName: options.WorkerName, AllowPrereleases: options.allowPrereleases,
		FaultPoint: faultPoint,
	})
	dependencies.Metrics = addon.NewMetrics(metrics.Registry)
	return addon.New(dependencies).SetupWithManager(made)
}

func addInstallations(
	ctx context.Context, made manager.Manager, marks *mergedcatalogue.Marks, identities *cluster.Identities, options *options,
) error {
	connections, err := newConnections(ctx, made, identities, options)
	if err != nil {
		return err
	}
	kinds := options.sources.Kinds()
	content, err := options.sources.Store(kinds, options.sourceInterval)
	if err != nil {
		return err
	}
	if err := made.Add(content); err != nil {
		return err
	}
	marked, err := newMarked(made, options, kinds.SecretKeys())
	if err != nil {
		return err
	}
	key, err := inputsKey(ctx, made, options.Namespace)
	if err != nil {
		return err
	}
	records, err := newRecords(made, options.Namespace, key)
	if err != nil {
		return err
	}
	renders, err := newRenders(made, &options.rendering, made.GetLogger())
	if err != nil {
		return err
	}
	platform, err := newPlatform(made, options)
	if err != nil {
		return err
	}
	rules, err := options.templates.images()
	if err != nil {
		return err
	}
	if err := metrics.Registry.Register(addoninstallation.NewCensus(made.GetClient(), made.Elected())); err != nil {
		return fmt.Errorf("registering metrics of installations: %w", err)
	}
	return addoninstallation.New(addoninstallation.Dependencies{
		Client: made.GetClient(), Marks: marks, Marked: marked, Direct: made.GetAPIReader(), Recorder: made.GetEventRecorder("addoninstallation"),
		Finder:      wiring.Finder(made),
		Connections: connections, Store: content, SourceKinds: kinds,
		Renders: renders, Values: renders,
		Platform: platform, ClusterSecrets: cluster.NewSecrets(made.GetAPIReader()), Images: rules,
		Records: records, InputsKey: key, QueueMetrics: fairqueue.NewMetrics(metrics.Registry),
		Options: addoninstallation.Options{
			CatalogueNamespace: options.CatalogueNamespace, DriftInterval: options.driftInterval,
			AllowPrereleases: options.allowPrereleases, Restrictions: options.restrictions, WorkerName: options.WorkerName,
			Passes: fairqueue.Limits{Workers: options.concurrency}, Variables: options.templates.variables,
		},
	}).SetupWithManager(made)
}

func newConnections(
	ctx context.Context, made manager.Manager, identities *cluster.Identities, options *options,
) (*cluster.Connections, error) {
	connections := cluster.NewConnections(made.GetAPIReader())
	if options.Fence != nil {
		connections.Fence = options.Fence
	}
	connections.KeepIdentities(identities)
	if err := errors.Join(made.Add(connections), made.Add(identities)); err != nil {
		return nil, err
	}
	if err := wiring.Finder(made).Inform(ctx, made.GetCache(), connections.Forget); err != nil {
		return nil, err
	}
	return connections, watchKubeconfigs(ctx, made, connections)
}

// newRecords keeps sealed records, and seals earlier ones once this manager leads.
func newRecords(made manager.Manager, namespace string, key []byte) (*revision.Records, error) {
	c := addoninstallation.SavingClient(made.GetClient(), made.GetAPIReader())
	records := revision.NewRecords(c, c, revision.NewSeal(key))
	return records, made.Add(records.SealEarlier(namespace, key))
}

// inputsKey reads the key before the manager's caches run.
func inputsKey(ctx context.Context, made manager.Manager, namespace string) ([]byte, error) {
	direct, err := client.New(made.GetConfig(), client.Options{Scheme: made.GetScheme(), HTTPClient: made.GetHTTPClient()})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return revision.LoadOrCreateInputsKey(ctx, direct, namespace)
}
