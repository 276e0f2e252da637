package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	"github.com/trellis-addons/trellis/pkg/lru"
	"github.com/trellis-addons/trellis/pkg/target"
	"github.com/trellis-addons/trellis/pkg/templatedata"
)

// secretsKept is how long a cluster's Secrets are not read again: passes of several core add-ons follow one another.
const secretsKept = 15 * time.Second

// MissingSecretError says that the Secret which a Cluster names for its provider's credentials does not exist.
type MissingSecretError struct {
	Cluster string
	Secret  types.NamespacedName
}

// Error implements error.
func (e *MissingSecretError) Error() string {
	return fmt.Sprintf("Cluster %q names Secret %q for its provider's credentials, which does not exist", e.Cluster, e.Secret)
}

// Secrets reads the Secrets that a Cluster itself refers to: its kubeconfig and its provider's credentials. They are for
// add-ons of Core catalogues only, and are read from the API server when they are needed.
type Secrets struct {
	reader client.Reader
	kept   *lru.Cache[target.Ref, keptSecrets]
}

type keptSecrets struct {
	secrets templatedata.Secrets
	named   types.NamespacedName
}

// NewSecrets reads through a reader that has no cache.
func NewSecrets(reader client.Reader) *Secrets {
	return &Secrets{reader: reader, kept: lru.New[target.Ref, keptSecrets](0, nil)}
}

// AddTo is template data with what its cluster refers to. The error is a NoKubeconfigError, a MissingSecretError, a
// templatedata.MissingCredentialError, or the reader's.
func (s *Secrets) AddTo(ctx context.Context, data templatedata.Data, cluster target.Description) (templatedata.Data, error) {
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
	if kept, ok := s.kept.Get(ref); ok && kept.named == name {
		return kept.secrets, nil
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
	s.kept.Put(ref, keptSecrets{secrets: secrets, named: name}, secretsKept)
	return secrets, nil
}
