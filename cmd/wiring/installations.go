package wiring

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/fence"
	"github.com/trellis-addons/trellis/pkg/clusters/access"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/platformvalues"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/controllers/addoninstallation"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/store"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/install/pullsecret"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/pkg/render/kept"
	"github.com/trellis-addons/trellis/pkg/values/images"
)

// InstallationParts are the dependencies of controller addoninstallation that a manager does not have.
type InstallationParts struct {
	// Namespace has the Seeds and the configuration of KKP.
	Namespace string
	// Identities are compared with those of user clusters; nil: any user cluster is accepted as the Cluster's own.
	Identities *cluster.Identities
	// AllowCIDRs are addresses of API servers of Cluster API's Clusters that would otherwise be refused.
	AllowCIDRs []netip.Prefix
	// Fence is in front of all calls to user clusters; nil: there is none.
	Fence *fence.Fence
	// Registry has the metrics of connections; nil: there are none.
	Registry    prometheus.Registerer
	SourceKinds fetch.Kinds
	Store       *store.Store
	Renders     *kept.Renders
	Images      images.Rules
	// PullSecret is the name of the Secret that pods of rewritten images name; "": none.
	PullSecret    string
	ProviderKinds []schema.GroupKind
	Records       *revision.Records
	InputsKey     []byte
	// Agents is what the platform grants to agents; nil: nothing.
	Agents  *access.Options
	Options addoninstallation.Options
}

// Records stores release records on a seed, sealed with its key.
func Records(made manager.Manager, key []byte) *revision.Records {
	saving := addoninstallation.NewSavingClient(made.GetClient(), made.GetAPIReader())
	return revision.NewRecords(saving, saving, revision.NewSeal(key))
}

// AddonInstallation returns the dependencies of controller addoninstallation. Caches, connections and the store run
// in the manager.
func AddonInstallation(
	ctx context.Context, made Seed, marks *mergedcatalogue.Marks, parts InstallationParts,
) (addoninstallation.Dependencies, error) {
	var none addoninstallation.Dependencies
	connections, err := newConnections(ctx, made, parts)
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
	recorder := made.GetEventRecorder("addoninstallation")
	said, err := newPlatformValues(ctx, made, parts.Namespace, cluster.ValuesOptions{
		Registries: parts.Images.Registries(), Clusters: made.Clusters, Recorder: recorder,
		Seed: func(ctx context.Context) (string, error) {
			return marks.Seed(ctx, made.GetClient(), parts.Options.CatalogueNamespace)
		},
	})
	if err != nil {
		return none, err
	}
	extras := cluster.Extras{KKP: made.Clusters.Serves(target.KindKKP), Providers: parts.ProviderKinds, Values: said}
	platform := cluster.NewPlatform(made.GetCache(), made.GetAPIReader(), made.GetRESTMapper(), parts.Namespace, extras)
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
	dependencies := addoninstallation.Dependencies{
		PullSecret: pulled, Neighbours: made.Clusters,
		Client: made.GetClient(), Marks: marks, Marked: marked, Direct: made.GetAPIReader(),
		Recorder: recorder, Held: made.Held, Finder: made.Clusters, Connections: connections,
		Store: parts.Store, SourceKinds: parts.SourceKinds, Renders: parts.Renders, Values: parts.Renders,
		Platform: platform, ClusterSecrets: cluster.NewSecrets(made.GetAPIReader(), parts.Namespace), Seen: made.Clusters, Images: parts.Images,
		Records: parts.Records, InputsKey: parts.InputsKey, Options: parts.Options,
	}
	if parts.Agents != nil {
		held, err := newHeldForAgents(made)
		if err != nil {
			return none, err
		}
		dependencies.Access, dependencies.AccessHeld = access.NewKeeper(made.GetClient(), made.GetAPIReader(), held, *parts.Agents), held
	}
	return dependencies, nil
}

// newPlatformValues watches the platform's values for its clusters, in a cache of its own.
func newPlatformValues(ctx context.Context, made Seed, namespace string, options cluster.ValuesOptions) (*cluster.PlatformValues, error) {
	held, err := FurtherCache(made, map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {
		Field:      fields.OneTermEqualSelector("metadata.name", platformvalues.ListName),
		Namespaces: map[string]cache.Config{namespace: {}}, Transform: cache.TransformStripManagedFields(),
	}})
	if err != nil {
		return nil, fmt.Errorf("creating the cache of the platform's values: %w", err)
	}
	if err := made.Add(held); err != nil {
		return nil, err
	}
	return cluster.NewPlatformValues(ctx, held, options)
}

// newHeldForAgents makes the cache of the objects made for agents on a seed, with Secrets as metadata, and of the
// roles that list agents' rights.
func newHeldForAgents(made Seed) (cache.Cache, error) {
	ours, err := labels.NewRequirement(kubermaticv1.LabelAccess, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	lists, err := labels.NewRequirement(kubermaticv1.LabelAgents, selection.In, []string{kubermaticv1.AgentsCore, kubermaticv1.AgentsCustom})
	if err != nil {
		return nil, err
	}
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	labelled := cache.ByObject{Label: labels.NewSelector().Add(*ours)}
	held, err := FurtherCache(made, map[client.Object]cache.ByObject{
		&corev1.ServiceAccount{}: labelled, &rbacv1.Role{}: labelled, &rbacv1.RoleBinding{}: labelled, secret: labelled,
		&rbacv1.ClusterRole{}: {Label: labels.NewSelector().Add(*lists)},
	}, func(options *cache.Options) { options.DefaultTransform = access.Trim })
	if err != nil {
		return nil, fmt.Errorf("creating the cache of agents' credentials: %w", err)
	}
	return held, made.Add(held)
}

// newConnections makes the connections to user clusters. They are informed of deleted Clusters and changed
// kubeconfigs.
func newConnections(
	ctx context.Context, made Seed, parts InstallationParts,
) (*cluster.Connections, error) {
	connections := cluster.NewConnections(made.GetAPIReader())
	connections.AllowCIDRs = parts.AllowCIDRs
	if parts.Fence != nil {
		connections.Fence = parts.Fence
	}
	connections.UseIdentities(parts.Identities)
	if err := made.Clusters.Inform(ctx, made.GetCache(), connections.Forget); err != nil {
		return nil, err
	}
	return connections, watchKubeconfigs(ctx, made, connections)
}

// newMarked makes the cache of Secrets and ConfigMaps that are marked for our use. A seed has many more, which are
// not for us; of the marked ones it keeps small content. It is separate from the manager's own cache, in which
// Secrets are watched as metadata.
func newMarked(made manager.Manager, catalogueNamespace string, keys fetch.SecretKeys) (cache.Cache, error) {
	marked := cache.ByObject{Label: markedForUse(), Transform: addoninstallation.TrimMarked(catalogueNamespace, keys)}
	held, err := FurtherCache(made, map[client.Object]cache.ByObject{&corev1.Secret{}: marked, &corev1.ConfigMap{}: marked})
	if err != nil {
		return nil, fmt.Errorf("creating the cache of marked objects: %w", err)
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

// watchKubeconfigs informs the connections when a user cluster's kubeconfig changes. It keeps only the names of the
// Secrets: the connections read them when they need them. KKP's are watched by name; Cluster API's, once there are
// such Clusters, by their label and as metadata.
func watchKubeconfigs(ctx context.Context, made Seed, connections *cluster.Connections) error {
	for _, name := range cluster.KubeconfigSecrets() {
		named := cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", name), Transform: dropData}
		err := watchSecrets(ctx, made, &corev1.Secret{}, named, func(secret client.Object) {
			connections.Refresh(target.Ref{Kind: target.KindKKP, Namespace: secret.GetNamespace()})
		})
		if err != nil {
			return fmt.Errorf("watching Secrets %q: %w", name, err)
		}
	}
	return made.Clusters.WhenServed(ctx, target.KindClusterAPI, func(ctx context.Context) error {
		labelled, err := labels.NewRequirement(cluster.LabelKubeconfig, selection.Exists, nil)
		if err != nil {
			return err
		}
		metadata := &metav1.PartialObjectMetadata{}
		metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		of := cache.ByObject{Label: labels.NewSelector().Add(*labelled), Transform: dropData}
		err = watchSecrets(ctx, made, metadata, of, func(secret client.Object) {
			if changed, isKubeconfig := cluster.KubeconfigOf(client.ObjectKeyFromObject(secret)); isKubeconfig {
				connections.Refresh(changed)
			}
		})
		if err != nil {
			return fmt.Errorf("watching kubeconfigs of Cluster API: %w", err)
		}
		return nil
	})
}

// watchSecrets calls a function with each Secret in its cache, when it is created, changed or deleted.
func watchSecrets(ctx context.Context, made manager.Manager, kind client.Object, held cache.ByObject, changed func(client.Object)) error {
	watched, err := FurtherCache(made, map[client.Object]cache.ByObject{kind: held})
	if err != nil {
		return err
	}
	if err := made.Add(watched); err != nil {
		return err
	}
	informer, err := watched.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	notify := func(object any) {
		if secret, ok := object.(client.Object); ok {
			changed(secret)
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: notify, UpdateFunc: func(_, object any) { notify(object) }, DeleteFunc: notify,
	})
	return err
}

func dropData(object any) (any, error) {
	switch secret := object.(type) {
	case *corev1.Secret:
		secret.Data, secret.ManagedFields = nil, nil
	case *metav1.PartialObjectMetadata:
		secret.Labels, secret.Annotations, secret.ManagedFields, secret.OwnerReferences = nil, nil, nil, nil
	}
	return object, nil
}
