package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/controllers/addoninstallation"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/target"
)

// newMarked makes the cache of Secrets and ConfigMaps that are marked for our use, in which the
// small ones are kept whole. The manager's own cache has the metadata of all Secrets.
func newMarked(made manager.Manager, options *options, keys fetch.SecretKeys) (cache.Cache, error) {
	marked := cache.ByObject{Label: markedForUse(), Transform: addoninstallation.TrimMarked(options.CatalogueNamespace, keys)}
	held, err := loop.Cache(made, map[client.Object]cache.ByObject{&corev1.Secret{}: marked, &corev1.ConfigMap{}: marked})
	if err != nil {
		return nil, fmt.Errorf("making the cache of marked objects: %w", err)
	}
	return held, made.Add(held)
}

func markedForUse() labels.Selector {
	requirement, err := labels.NewRequirement(kubermaticv1.LabelUse, selection.In, []string{kubermaticv1.UseSource, kubermaticv1.UseValues})
	if err != nil {
		panic(err) // the label and its values are constants
	}
	return labels.NewSelector().Add(*requirement)
}

// watchKubeconfigs refreshes the connections when a user cluster's kubeconfig changes. It keeps the
// Secrets' names only: the connections read them when they need them.
func watchKubeconfigs(ctx context.Context, made manager.Manager, connections *cluster.Connections) error {
	for _, name := range cluster.KubeconfigSecrets() {
		watched, err := loop.Cache(made, map[client.Object]cache.ByObject{&corev1.Secret{}: {
			Field: fields.OneTermEqualSelector("metadata.name", name), Transform: dropData,
		}})
		if err != nil {
			return fmt.Errorf("making the cache of Secrets %q: %w", name, err)
		}
		if err := made.Add(watched); err != nil {
			return err
		}
		informer, err := watched.GetInformer(ctx, &corev1.Secret{}, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching Secrets %q: %w", name, err)
		}
		if _, err := informer.AddEventHandler(refreshes(connections)); err != nil {
			return fmt.Errorf("watching Secrets %q: %w", name, err)
		}
	}
	return nil
}

func refreshes(connections *cluster.Connections) toolscache.ResourceEventHandler {
	refresh := func(object any) {
		if secret, ok := object.(*corev1.Secret); ok {
			connections.Refresh(target.Ref{Namespace: secret.Namespace})
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    refresh,
		UpdateFunc: func(_, object any) { refresh(object) },
		DeleteFunc: refresh,
	}
}

func dropData(object any) (any, error) {
	if secret, ok := object.(*corev1.Secret); ok {
		secret.Data, secret.ManagedFields = nil, nil
	}
	return object, nil
}

// newMarks reads the key of merged catalogues before the caches run, and then watches its Secret.
func newMarks(ctx context.Context, made manager.Manager, namespace string) (*mergedcatalogue.Marks, error) {
	direct, err := client.New(made.GetConfig(), client.Options{Scheme: made.GetScheme(), HTTPClient: made.GetHTTPClient()})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	marks := mergedcatalogue.New(made.GetLogger().WithName("merged"))
	if err := marks.Read(ctx, direct, namespace); err != nil {
		return nil, err
	}
	held, err := cache.New(made.GetConfig(), cache.Options{
		Scheme: made.GetScheme(), Mapper: made.GetRESTMapper(), HTTPClient: made.GetHTTPClient(),
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {
			Field:      fields.OneTermEqualSelector("metadata.name", kubermaticv1.SecretCatalogueKey),
			Namespaces: map[string]cache.Config{namespace: {}},
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("making the cache of Secret %q: %w", kubermaticv1.SecretCatalogueKey, err)
	}
	if err := marks.Follow(ctx, held); err != nil {
		return nil, err
	}
	return marks, made.Add(held)
}
