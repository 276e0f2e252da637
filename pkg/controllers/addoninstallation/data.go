package addoninstallation

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/install/rendering"
	"github.com/trellis-addons/trellis/pkg/install/resolution"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
)

// Platform reads the seed's other objects.
type Platform interface {
	// TemplateData is the data of templates, without secrets.
	TemplateData(ctx context.Context, cluster target.Description, variables map[string]any) (templatedata.Data, error)
	resolution.Providers
	// IsProvider says whether providerRef and objectRef may name the kind.
	IsProvider(kind schema.GroupKind) bool
	// KKPAddon is KKP's own Addon of a name in a cluster; nil if there is none.
	KKPAddon(ctx context.Context, cluster target.Ref, name string) (*metav1.PartialObjectMetadata, error)
	// Subscribe registers a callback for changes of these objects.
	Subscribe(changed func(cluster.Change))
}

// ClusterSecrets adds the Secrets that a Cluster refers to, for add-ons of Core catalogues.
type ClusterSecrets interface {
	AddTo(ctx context.Context, data templatedata.Data, cluster target.Description) (templatedata.Data, error)
}

// SeenOfCAPI reads the objects of Cluster API that valuesTemplates see. The description has the same state.
type SeenOfCAPI interface {
	Seen(
		ctx context.Context, of target.Description, names templatedata.CAPINames, reader cluster.Reader,
	) (target.Description, map[string]any, error)
	// Unread ends notifications to a reader.
	Unread(reader types.NamespacedName)
}

// seenOfCAPI is the data of Cluster API for valuesTemplates of the version and of the installation, and the Cluster in
// the same state. Changes wake the installation.
func (r *Reconciler) seenOfCAPI(ctx context.Context, f *facts) (target.Description, map[string]any, error) {
	names := templatedata.NamedOfCAPI(f.choice.Version.ValuesTemplate, f.installation.Spec.ValuesTemplate)
	if f.cluster.IsKKP() {
		return f.cluster, nil, nil
	}
	return r.Seen.Seen(ctx, f.cluster, names, cluster.Reader{
		Name: client.ObjectKeyFromObject(f.installation), Changed: r.waker(f.installation),
	})
}

// templateData is a Cluster's data for templates. It includes Secrets for versions of Core catalogues that ask for
// them.
func (r *Reconciler) templateData(ctx context.Context, f *facts, of target.Description) (templatedata.Data, error) {
	data, err := r.Platform.TemplateData(ctx, of, r.Options.Variables[addonOf(f.installation)])
	data.BuiltIn = rendering.BuiltIn(f.installation.Namespace, f.installation, f.choice.Version)
	if err != nil || !f.choice.SeesSecrets() {
		return data, err
	}
	return r.ClusterSecrets.AddTo(ctx, data, of)
}

// dataOutcome retries: no event reports a Cluster's new Secrets.
func dataOutcome(err error) *loop.Outcome {
	var (
		version    *templatedata.VersionError
		credential *templatedata.MissingCredentialError
		secret     *cluster.MissingSecretError
		kubeconfig *cluster.NoKubeconfigError
		several    *cluster.SeveralConfigurationsError
		unseen     *cluster.UnseenError
		unread     *cluster.UnreadValuesError
	)
	switch {
	case errors.As(err, &version):
		return loop.Stall(kubermaticv1.ConditionValuesResolved, kubermaticv1.ReasonValuesInvalid, err.Error())
	case errors.As(err, &credential), errors.As(err, &secret), errors.As(err, &kubeconfig), errors.As(err, &several),
		errors.As(err, &unseen), errors.As(err, &unread):
		return loop.Wait(kubermaticv1.ConditionValuesResolved, kubermaticv1.ReasonValuesMissing, err.Error(), clusterRecheck)
	}
	return failed(err)
}

// watchPlatform wakes the installations that a change affects.
func (r *Reconciler) watchPlatform(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	r.Platform.Subscribe(func(change cluster.Change) {
		for _, request := range r.ofChange(ctx, change) {
			queue.Add(request)
		}
	})
	return nil
}

// ofChange are the requests for a change: of a provider's object for the installations that name it, otherwise for all
// that see the changed data.
func (r *Reconciler) ofChange(ctx context.Context, change cluster.Change) []reconcile.Request {
	if change.Kind == cluster.KindPlatformValues && change.Cluster.Namespace != "" {
		return r.requestsOf(ctx, change.Cluster)
	}
	var options []client.ListOption
	if change.Cluster.Namespace != "" {
		options = append(options, cluster.InstallationsOf(change.Cluster))
	}
	if change.Kind == cluster.KindKKPAddon {
		return r.requests(ctx, cluster.InstallationsOf(change.Cluster), client.MatchingFields{indexAddon: change.Name})
	}
	if !r.Platform.IsProvider(change.Kind) {
		return r.requests(ctx, options...)
	}
	var requests []reconcile.Request
	for _, installation := range r.installations(ctx, options...) {
		if r.names(ctx, &installation, change) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&installation)})
		}
	}
	return requests
}

// names says whether an installation, or a version of its add-on, names an object. Any version counts: the chosen one is
// known to reconciliations only.
func (r *Reconciler) names(ctx context.Context, installation *kubermaticv1.AddonInstallation, change cluster.Change) bool {
	for _, source := range installation.Spec.ValuesFrom {
		provider, object := source.ProviderRef, source.ObjectRef
		if provider != nil && resolution.ProviderKind(provider) == change.Kind && provider.Name == change.Name ||
			object != nil && resolution.ObjectKind(object) == change.Kind && object.Name == change.Name {
			return true
		}
	}
	entry, err := r.Marks.Entry(ctx, r.Client, client.ObjectKey{Namespace: r.Options.CatalogueNamespace, Name: addonOf(installation)})
	if err != nil {
		return true // the reconciliation reports it
	}
	return entry != nil && entry.Names(change.Kind.Group, change.Kind.Kind, change.Name)
}
