package wiring

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/controllers/addoninstallation"
	"github.com/trellis-addons/trellis/pkg/fence"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/store"
	"github.com/trellis-addons/trellis/pkg/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/pullsecret"
	"github.com/trellis-addons/trellis/pkg/render/images"
	"github.com/trellis-addons/trellis/pkg/render/kept"
	"github.com/trellis-addons/trellis/pkg/rendering"
	"github.com/trellis-addons/trellis/pkg/revision"
	"github.com/trellis-addons/trellis/pkg/target"
)

// InstallationParts are what controller addoninstallation works with that a manager does not give.
type InstallationParts struct {
	// Namespace holds the Seeds and the configuration of KKP.
	Namespace string
	// Identities are compared with those of user clusters; nil: a user cluster is taken for the
	// Cluster's own.
	Identities *cluster.Identities
	// Fence is before all that user clusters are sent; nil: there is none.
	Fence *fence.Fence
	// Registry has the figures of connections; nil: nobody reads them.
	Registry    prometheus.Registerer
	SourceKinds fetch.Kinds
	Store       *store.Store
	Renders     *kept.Renders
	Images      rendering.Images
	// PullSecret is the name of the Secret that pods of rewritten images name; "": none.
	PullSecret    string
	ProviderKinds []schema.GroupKind
	Records       *revision.Records
	InputsKey     []byte
	Options       addoninstallation.Options
}

// Records keeps release records on a seed, sealed with its key.
func Records(made manager.Manager, key []byte) *revision.Records {
	saving := addoninstallation.NewSavingClient(made.GetClient(), made.GetAPIReader())
	return revision.NewRecords(saving, saving, revision.NewSeal(key))
}

// AddonInstallation are what controller addoninstallation works with. Caches, connections and the
// store run in the manager.
func AddonInstallation(
	ctx context.Context, made manager.Manager, marks *mergedcatalogue.Marks, parts InstallationParts,
) (addoninstallation.Dependencies, error) {
	var none addoninstallation.Dependencies
	connections, err := newConnections(ctx, made, parts.Identities, parts.Fence)
	if err != nil {
		return none, err
	}
	if parts.Registry != nil {
		if err := parts.Registry.Register(connections); err != nil {
			return none, fmt.Errorf("registering metrics of connections: %w", err)
		}
	}
	marked, err := newMarked(made, parts.Options.CatalogueNamespace, parts.SourceKinds.SecretKeys())
	if err != nil {
		return none, err
	}
	platform := cluster.NewPlatform(made.GetCache(), made.GetAPIReader(), made.GetRESTMapper(), parts.Namespace, parts.ProviderKinds)
	if err := errors.Join(made.Add(connections), made.Add(marked), made.Add(parts.Store), made.Add(platform)); err != nil {
		return none, err
	}
	saving := addoninstallation.NewSavingClient(made.GetClient(), made.GetAPIReader())
	pulled := pullsecret.NewRecords(saving, saving, pullsecret.Options{
		Namespace: parts.Namespace, Name: parts.PullSecret, Key: parts.InputsKey, Away: pullsecret.AwayFor, Needs: images.Pulls,
		Read: addoninstallation.ReadMarkedSecret(marked, made.GetAPIReader()),
	})
	if parts.Identities != nil {
		parts.Identities.OnForgotten(pulled.Forget)
	}
	return addoninstallation.Dependencies{
		PullSecret: pulled,
		Client:     made.GetClient(), Marks: marks, Marked: marked, Direct: made.GetAPIReader(),
		Recorder: made.GetEventRecorder("addoninstallation"), Finder: Finder(made), Connections: connections,
		Store: parts.Store, SourceKinds: parts.SourceKinds, Renders: parts.Renders, Values: parts.Renders,
		Platform: platform, ClusterSecrets: cluster.NewSecrets(made.GetAPIReader()), Images: parts.Images,
		Records: parts.Records, InputsKey: parts.InputsKey, Options: parts.Options,
	}, nil
}

// newConnections makes the connections to user clusters. They hear of Clusters that go and of
// kubeconfigs that change.
func newConnections(
	ctx context.Context, made manager.Manager, identities *cluster.Identities, fence *fence.Fence,
) (*cluster.Connections, error) {
	connections := cluster.NewConnections(made.GetAPIReader())
	if fence != nil {
		connections.Fence = fence
	}
	connections.UseIdentities(identities)
	if err := Finder(made).Inform(ctx, made.GetCache(), connections.Forget); err != nil {
		return nil, err
	}
	return connections, watchKubeconfigs(ctx, made, connections)
}

// newMarked makes the cache of Secrets and ConfigMaps that are marked for our use. A seed holds
// many more, and none of our business; of those that are, it keeps what is small. It is apart from
// the manager's own cache, in which Secrets are watched as metadata.
func newMarked(made manager.Manager, catalogueNamespace string, keys fetch.SecretKeys) (cache.Cache, error) {
	marked := cache.ByObject{Label: markedForUse(), Transform: addoninstallation.TrimMarked(catalogueNamespace, keys)}
	held, err := FurtherCache(made, map[client.Object]cache.ByObject{&corev1.Secret{}: marked, &corev1.ConfigMap{}: marked})
	if err != nil {
		return nil, fmt.Errorf("making the cache of marked objects: %w", err)
	}
	return held, nil
}

func markedForUse() labels.Selector {
	uses := []string{kubermaticv1.UseSource, kubermaticv1.UseValues, kubermaticv1.UsePull}
	requirement, err := labels.NewRequirement(kubermaticv1.LabelUse, selection.In, uses)
	if err != nil {
		panic(err) // the label and its values are constants
	}
	return labels.NewSelector().Add(*requirement)
}

// watchKubeconfigs tells the connections when a user cluster's kubeconfig changes. It watches by
// name, and keeps nothing of the Secrets but their names: the connections read them when they need
// them.
func watchKubeconfigs(ctx context.Context, made manager.Manager, connections *cluster.Connections) error {
	for _, name := range cluster.KubeconfigSecrets() {
		watched, err := FurtherCache(made, map[client.Object]cache.ByObject{&corev1.Secret{}: {
			Field: fields.OneTermEqualSelector("metadata.name", name), Transform: dropData,
		}})
		if err != nil {
			return fmt.Errorf("making the cache of Secrets %q: %w", name, err)
		}
		if err := made.Add(watched); err != nil {
			return err
		}
		informer, err := watched.GetInformer(ctx, &corev1.Secret{}, cache.BlockUntilSynced(false))
		if err == nil {
			_, err = informer.AddEventHandler(refreshes(connections))
		}
		if err != nil {
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
