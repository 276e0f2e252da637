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

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/resolution"
	"github.com/trellis-addons/trellis/pkg/templatedata"
)

// Platform knows what the seed has beside Clusters.
type Platform interface {
	// Facts are what template data needs and the Cluster does not hold.
	Facts(ctx context.Context, cluster *kkpv1.Cluster) (templatedata.Options, error)
	// IsProvider says whether providerRef may name the kind; ProviderSecret is the Secret that an object of it names.
	IsProvider(kind schema.GroupKind) bool
	ProviderSecret(ctx context.Context, kind schema.GroupKind, key types.NamespacedName) (string, error)
	// KKPAddon is KKP's own Addon of a name in a cluster namespace; nil for none.
	KKPAddon(ctx context.Context, key types.NamespacedName) (*metav1.PartialObjectMetadata, error)
	// Subscribe has changes of all of that told.
	Subscribe(changed func(cluster.Change))
}

// ClusterSecrets reads the Secrets that a Cluster itself refers to, for add-ons of Core catalogues.
type ClusterSecrets interface {
	Of(ctx context.Context, cluster *kkpv1.Cluster) (templatedata.Secrets, error)
}

// templateData is what templates see. Secrets are in it for versions of Core catalogues that ask for them.
func (r *Reconciler) templateData(ctx context.Context, f *facts) (templatedata.Data, error) {
	known, err := r.Platform.Facts(ctx, f.cluster)
	if err != nil {
		return templatedata.Data{}, err
	}
	known.Variables = r.Options.Variables[addonOf(f)]
	data, err := templatedata.New(f.cluster, known)
	if err != nil || !f.choice.SeesSecrets() {
		return data, err
	}
	secrets, err := r.ClusterSecrets.Of(ctx, f.cluster)
	if err != nil {
		return templatedata.Data{}, err
	}
	return templatedata.WithSecrets(data, f.cluster, secrets)
}

// dataOutcome: nobody tells us when a Cluster's Secrets come, so they are looked for again.
func dataOutcome(err error) loop.Outcome {
	var (
		version    *templatedata.VersionError
		credential *templatedata.MissingCredentialError
		secret     *cluster.MissingSecretError
		kubeconfig *cluster.NoKubeconfigError
		several    *cluster.SeveralConfigurationsError
	)
	switch {
	case errors.As(err, &version):
		return loop.Stalled{Condition: kubermaticv1.ConditionValuesResolved, Reason: kubermaticv1.ReasonValuesInvalid, Message: err.Error()}
	case errors.As(err, &credential), errors.As(err, &secret), errors.As(err, &kubeconfig), errors.As(err, &several):
		return loop.Waiting{
			Condition: kubermaticv1.ConditionValuesResolved, Reason: kubermaticv1.ReasonValuesMissing, Message: err.Error(),
			Recheck: clusterRecheck,
		}
	}
	return failed(err)
}

// watchPlatform wakes the installations that a change is about.
func (r *Reconciler) watchPlatform(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	r.Platform.Subscribe(func(change cluster.Change) {
		for _, request := range r.ofChange(ctx, change) {
			queue.Add(request)
		}
	})
	return nil
}

// ofChange: a provider's object wakes those that name it, the rest all that see the same facts.
func (r *Reconciler) ofChange(ctx context.Context, change cluster.Change) []reconcile.Request {
	var options []client.ListOption
	if change.Namespace != "" {
		options = append(options, client.InNamespace(change.Namespace))
	}
	if change.Kind == cluster.KindKKPAddon {
		return r.ofKKPAddon(ctx, change)
	}
	if !r.Platform.IsProvider(change.Kind) {
		return r.requests(ctx, options...)
	}
	var requests []reconcile.Request
	for _, installation := range r.installations(ctx, options...) {
		for _, source := range installation.Spec.ValuesFrom {
			if ref := source.ProviderRef; ref != nil && resolution.ProviderKind(ref) == change.Kind && ref.Name == change.Name {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&installation)})
				break
			}
		}
	}
	return requests
}
