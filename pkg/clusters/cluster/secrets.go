package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	capiv1 "github.com/trellis-addons/trellis/apis/clusterapi/v1"
	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	"github.com/trellis-addons/trellis/pkg/base/lru"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
)

// secretsTTL is how long a cluster's Secrets are cached: several core add-ons need them in succession.
const secretsTTL = 15 * time.Second

// MissingSecretError reports that the Secret of a Cluster's provider credentials does not exist, or is in a namespace
// where it may not be.
type MissingSecretError struct {
	Cluster string
	Secret  types.NamespacedName
	// Places are the namespaces where it may be; empty: it is in one of them.
	Places []string
}

func (e *MissingSecretError) Error() string {
	if len(e.Places) > 0 {
		return fmt.Sprintf("Cluster %q names Secret %q for its provider's credentials, which are read in namespaces %q only: "+
			"move the Secret to one of them", e.Cluster, e.Secret, e.Places)
	}
	return fmt.Sprintf("Cluster %q names Secret %q for its provider's credentials, which does not exist", e.Cluster, e.Secret)
}

// Secrets reads the Secrets that a Cluster refers to, when needed: its kubeconfig and its provider's credentials.
// Only add-ons of Core catalogues may use them.
type Secrets struct {
	reader client.Reader
	// platform is the platform's namespace: Secrets of a provider are there, or in the namespace of the kubeconfig.
	platform string
	cache    *lru.Cache[target.Ref, cachedSecrets]
}

type cachedSecrets struct {
	secrets templatedata.Secrets
	named   types.NamespacedName
}

// NewSecrets creates Secrets with a reader, which must bypass caches. It reads the platform's namespace and those of
// Clusters.
func NewSecrets(reader client.Reader, platform string) *Secrets {
	return &Secrets{reader: reader, platform: platform, cache: lru.New[target.Ref, cachedSecrets](0, nil)}
}

// AddTo adds the Secrets that a cluster of KKP refers to. The error is a NoKubeconfigError, a
// MissingSecretError, a templatedata.MissingCredentialError, or the reader's.
func (s *Secrets) AddTo(ctx context.Context, data templatedata.Data, cluster target.Description) (templatedata.Data, error) {
	if !cluster.IsKKP() {
		return data, nil // Clusters of Cluster API refer to none
	}
	kkp, err := kkpCluster(cluster)
	if err != nil {
		return templatedata.Data{}, err
	}
	secrets, err := s.of(ctx, kkp)
	if err != nil {
		return templatedata.Data{}, err
	}
	return templatedata.WithSecrets(data, kkp, secrets)
}

func (s *Secrets) of(ctx context.Context, cluster *kkpv1.Cluster) (templatedata.Secrets, error) {
	name, isNamed := templatedata.CredentialsSecret(cluster)
	ref := Describe(cluster).Ref
	if places := []string{s.platform, ref.Namespace}; isNamed && !slices.Contains(places, name.Namespace) {
		return templatedata.Secrets{}, &MissingSecretError{Cluster: cluster.Name, Secret: name, Places: places}
	}
	if cached, ok := s.cache.Get(ref); ok && cached.named == name {
		return cached.secrets, nil
	}
	kubeconfig, err := ReadKubeconfig(ctx, s.reader, ref)
	if err != nil {
		return templatedata.Secrets{}, err
	}
	secrets := templatedata.Secrets{Kubeconfig: string(kubeconfig)}
	if isNamed {
		var secret corev1.Secret
		err := s.reader.Get(ctx, name, &secret)
		if apierrors.IsNotFound(err) {
			return templatedata.Secrets{}, &MissingSecretError{Cluster: cluster.Name, Secret: name}
		}
		if err != nil {
			return templatedata.Secrets{}, fmt.Errorf("reading Secret %q: %w", name, err)
		}
		secrets.Credentials = secret.Data
	}
	s.cache.Put(ref, cachedSecrets{secrets: secrets, named: name}, secretsTTL)
	return secrets, nil
}

// KubeconfigKey is the key of the kubeconfig in its Secret (pkg/resources/resources.go of KKP).
const KubeconfigKey = "kubeconfig"

// KubeconfigSecrets are the Secrets with a kubeconfig in a cluster namespace, best first: KKP's internal one, which
// leads directly to the API server, and the users' one.
func KubeconfigSecrets() []string {
	return []string{"internal-admin-kubeconfig", "admin-kubeconfig"}
}

// kubeconfigsOf are the Secrets that may have a cluster's kubeconfig, best first, and its key in them.
func kubeconfigsOf(cluster target.Ref) (names []string, key string) {
	if cluster.Kind == target.KindClusterAPI {
		return []string{cluster.Name + capiv1.KubeconfigSuffix}, capiv1.KubeconfigKey
	}
	return KubeconfigSecrets(), KubeconfigKey
}

// KubeconfigOf is the Cluster of Cluster API to which a kubeconfig Secret belongs, by its name.
func KubeconfigOf(secret client.ObjectKey) (cluster target.Ref, isKubeconfig bool) {
	name, isKubeconfig := strings.CutSuffix(secret.Name, capiv1.KubeconfigSuffix)
	return target.Ref{Kind: target.KindClusterAPI, Namespace: secret.Namespace, Name: name}, isKubeconfig && name != ""
}

// LabelKubeconfig is a label of kubeconfig Secrets of Cluster API's Clusters, and of their other Secrets.
const LabelKubeconfig = capiv1.LabelClusterName

// NoKubeconfigError reports that a cluster has no kubeconfig.
type NoKubeconfigError struct{ Cluster target.Ref }

func (e *NoKubeconfigError) Error() string {
	names, key := kubeconfigsOf(e.Cluster)
	return fmt.Sprintf("namespace %q has no Secret %q with key %q", e.Cluster.Namespace, names[0], key)
}

// ReadKubeconfig reads a kubeconfig without checking it. The error is a NoKubeconfigError, or the reader's.
func ReadKubeconfig(ctx context.Context, reader client.Reader, cluster target.Ref) ([]byte, error) {
	names, key := kubeconfigsOf(cluster)
	for _, name := range names {
		var secret corev1.Secret
		err := reader.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: name}, &secret)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading Secret %q: %w", cluster.Namespace+"/"+name, err)
		}
		if data := secret.Data[key]; !apierrors.IsNotFound(err) && len(data) > 0 {
			return data, nil
		}
	}
	return nil, &NoKubeconfigError{Cluster: cluster}
}
