package cluster

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	capiv1 "github.com/trellis-addons/trellis/apis/clusterapi/v1"
	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
)

// Kinds of KKP that template data needs in addition to Cluster. A seed may lack some.
const (
	kindSeed          = "Seed"
	kindAllocation    = "IPAMAllocation"
	kindConfiguration = "KubermaticConfiguration"
)

// Platform reads the objects of a seed beside Clusters: KKP's kinds for template data, and the kinds that providerRef
// and objectRef may name. A kind that the seed doesn't serve is no error; it is used within a minute after it is served. Platform
// is a manager.Runnable.
type Platform struct {
	// objects is the manager's cache; reader bypasses it.
	objects   cache.Cache
	reader    client.Reader
	namespace string
	kinds     *optionalKinds
	providers []schema.GroupKind
	values    *PlatformValues
}

// Extras are the kinds that are read in addition to Clusters.
type Extras struct {
	// KKP says that its Clusters are served, so its kinds are read.
	KKP bool
	// Providers are the kinds that providerRef and objectRef may name.
	Providers []schema.GroupKind
	// Values are the platform's values about its clusters; nil: none.
	Values *PlatformValues
}

// NewPlatform makes a Platform of these kinds.
func NewPlatform(objects cache.Cache, reader client.Reader, mapper meta.RESTMapper, namespace string, extras Extras) *Platform {
	p := &Platform{objects: objects, reader: reader, namespace: namespace, providers: extras.Providers, values: extras.Values}
	p.kinds = newOptionalKinds(objects, mapper)
	if extras.KKP {
		p.kinds.wanted = kindsOfKKP()
	}
	for _, provider := range extras.Providers {
		p.kinds.wanted = append(p.kinds.wanted, optionalKind{kind: provider})
	}
	return p
}

func kindsOfKKP() []optionalKind {
	kkp := func(kind string) schema.GroupKind {
		return schema.GroupKind{Group: kkpv1.GroupVersion.Group, Kind: kind}
	}
	return []optionalKind{
		{kind: kkp(kindSeed), typed: &kkpv1.Seed{}, everywhere: true, differs: partDiffers(func(seed *kkpv1.Seed) any {
			return slices.Sorted(maps.Keys(seed.Spec.Datacenters))
		})},
		{
			kind: kkp(kindAllocation), isOfKKP: true, typed: &kkpv1.IPAMAllocation{},
			differs: partDiffers(func(allocation *kkpv1.IPAMAllocation) any { return allocation.Spec }),
		},
		{
			kind: kkp(kindConfiguration), typed: &kkpv1.KubermaticConfiguration{}, everywhere: true,
			differs: partDiffers(func(one *kkpv1.KubermaticConfiguration) any { return one.Spec }),
		},
		{
			kind: KindKKPAddon, isOfKKP: true,
			differs: partDiffers(func(addon *metav1.PartialObjectMetadata) any { return addon.DeletionTimestamp.IsZero() }),
		},
	}
}

func partDiffers[O client.Object](part func(O) any) func(before, after client.Object) bool {
	return func(before, after client.Object) bool {
		one, isOne := before.(O)
		other, isOther := after.(O)
		return !isOne || !isOther || !reflect.DeepEqual(part(one), part(other))
	}
}

// Start looks for optional kinds until the context ends.
func (p *Platform) Start(ctx context.Context) error { return p.kinds.start(ctx) }

// NeedLeaderElection is false, so that waiting replicas know the kinds.
func (p *Platform) NeedLeaderElection() bool { return false }

// Change is a change of an object that installations depend on.
type Change struct {
	Kind schema.GroupKind
	Name string
	// Cluster that the object concerns; empty: all.
	Cluster target.Ref
}

// Subscribe calls a function for each change. It must not block.
func (p *Platform) Subscribe(changed func(Change)) {
	p.kinds.subscribe(changed)
	p.values.subscribe(changed)
}

// IsProvider reports whether providerRef and objectRef may name the kind.
func (p *Platform) IsProvider(kind schema.GroupKind) bool { return slices.Contains(p.providers, kind) }

// SeveralConfigurationsError reports that a namespace has more than one KubermaticConfiguration.
type SeveralConfigurationsError struct{ Namespace string }

func (e *SeveralConfigurationsError) Error() string {
	return fmt.Sprintf("namespace %q has more than one KubermaticConfiguration: keep only one of them", e.Namespace)
}

// TemplateData is the data of a cluster for templates, without secrets. The error is a SeveralConfigurationsError, an
// UnreadValuesError, a templatedata.VersionError, or the cache's.
func (p *Platform) TemplateData(ctx context.Context, cluster target.Description, variables map[string]any) (templatedata.Data, error) {
	said, err := p.values.of(ctx, cluster)
	if err != nil {
		return templatedata.Data{}, err
	}
	if found, isCAPI := cluster.Object.(*capiv1.Cluster); isCAPI { // KKP's objects concern KKP's clusters only
		words := templatedata.InWordsOfKKP(found, cluster.KubernetesVersion, templatedata.ProviderOf(found))
		return templatedata.New(words, templatedata.Options{Variables: variables, Platform: said, Registries: p.values.registries()})
	}
	kkp, err := kkpCluster(cluster)
	if err != nil {
		return templatedata.Data{}, err
	}
	facts, err := p.facts(ctx, kkp)
	if err != nil {
		return templatedata.Data{}, err
	}
	facts.Variables, facts.Platform, facts.Registries = variables, said, p.values.registries()
	return templatedata.New(kkp, facts)
}

// facts are the template data that is not in the Cluster.
func (p *Platform) facts(ctx context.Context, cluster *kkpv1.Cluster) (templatedata.Options, error) {
	var facts templatedata.Options
	var seeds kkpv1.SeedList
	if err := p.list(ctx, kindSeed, &seeds, p.namespace); err != nil {
		return facts, err
	}
	facts.SeedName = templatedata.SeedOf(cluster.Spec.Cloud.Datacenter, seeds.Items)
	var allocations kkpv1.IPAMAllocationList
	if err := p.list(ctx, kindAllocation, &allocations, cluster.Status.NamespaceName); err != nil {
		return facts, err
	}
	facts.IPAMAllocations = templatedata.Allocations(allocations.Items)
	var configurations kkpv1.KubermaticConfigurationList
	if err := p.list(ctx, kindConfiguration, &configurations, p.namespace); err != nil {
		return facts, err
	}
	switch len(configurations.Items) {
	case 0:
	case 1:
		facts.OverwriteRegistry = configurations.Items[0].Spec.UserCluster.OverwriteRegistry
	default:
		return facts, &SeveralConfigurationsError{Namespace: p.namespace}
	}
	return facts, nil
}

func (p *Platform) list(ctx context.Context, kind string, list client.ObjectList, namespace string) error {
	served, err := p.kinds.version(schema.GroupKind{Group: kkpv1.GroupVersion.Group, Kind: kind})
	if err != nil || served == nil {
		return err
	}
	if err := p.objects.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("listing %ss in namespace %q: %w", kind, namespace, err)
	}
	return nil
}

// ProviderObject reads an object of a kind that providerRef and objectRef may name. The error is a target.ProviderError, or
// the reader's. An object of no namespace is refused: it belongs to no cluster.
func (p *Platform) ProviderObject(ctx context.Context, kind schema.GroupKind, key types.NamespacedName) (map[string]any, error) {
	problem := func(text string) error { return &target.ProviderError{Kind: kind, Name: key.Name, Problem: text} }
	if !p.IsProvider(kind) {
		return nil, problem("is of a kind that this seed does not allow: see its --provider-kinds")
	}
	served, err := p.kinds.version(kind)
	if err != nil {
		return nil, err
	}
	if served == nil {
		return nil, problem("is of a kind that this seed does not serve")
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(*served)
	err = p.reader.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return nil, &target.ProviderError{Kind: kind, Name: key.Name, Problem: "does not exist in this namespace", IsMissing: true}
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %q: %w", kind, key, err)
	}
	if object.GetNamespace() != key.Namespace {
		return nil, problem("is of a kind without namespaces, so it belongs to no cluster")
	}
	return object.Object, nil
}

func asMetadata(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	return object
}

// KindKKPAddon is the kind of KKP's own add-ons (sdk/apis/kubermatic/v1/addon.go of KKP).
var KindKKPAddon = schema.GroupKind{Group: kkpv1.GroupVersion.Group, Kind: "Addon"}

// KKPAddonFinalizer makes KKP delete an Addon's manifests when the Addon is deleted
// (pkg/controller/seed-controller-manager/addon of KKP).
const KKPAddonFinalizer = "cleanup-manifests"

// KKPAddon is the cached metadata of KKP's Addon of a name in a cluster. It is nil if there is none, or if the seed
// does not serve the kind.
func (p *Platform) KKPAddon(ctx context.Context, cluster target.Ref, name string) (*metav1.PartialObjectMetadata, error) {
	if !cluster.IsKKP() {
		return nil, nil
	}
	served, err := p.kinds.version(KindKKPAddon)
	if err != nil || served == nil {
		return nil, err
	}
	addon := asMetadata(*served)
	key := types.NamespacedName{Namespace: cluster.Namespace, Name: name}
	err = p.objects.Get(ctx, key, addon)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading KKP's Addon %q: %w", key, err)
	}
	return addon, nil
}
