package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
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
	clock  clock.PassiveClock

	mutex sync.Mutex
	kept  map[Identity]keptSecrets
}

type keptSecrets struct {
	secrets templatedata.Secrets
	named   types.NamespacedName
	until   time.Time
}

// NewSecrets reads through a reader that has no cache.
func NewSecrets(reader client.Reader) *Secrets {
	return &Secrets{reader: reader, clock: clock.RealClock{}, kept: map[Identity]keptSecrets{}}
}

// Of is what a Cluster refers to. The error is a NoKubeconfigError, a MissingSecretError, or the reader's.
func (s *Secrets) Of(ctx context.Context, cluster *kkpv1.Cluster) (templatedata.Secrets, error) {
	name, isNamed := templatedata.CredentialsSecret(cluster)
	identity := IdentityOf(cluster)
	if kept, ok := s.recall(identity); ok && kept.named == name {
		return kept.secrets, nil
	}
	kubeconfig, err := ReadKubeconfig(ctx, s.reader, cluster.Status.NamespaceName)
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
	s.keep(identity, keptSecrets{secrets: secrets, named: name, until: s.clock.Now().Add(secretsKept)})
	return secrets, nil
}

func (s *Secrets) recall(cluster Identity) (keptSecrets, bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	kept, ok := s.kept[cluster]
	return kept, ok && s.clock.Now().Before(kept.until)
}

// keep drops what is out of date, so that nothing stays of clusters that are gone.
func (s *Secrets) keep(cluster Identity, fresh keptSecrets) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for other, kept := range s.kept {
		if !s.clock.Now().Before(kept.until) {
			delete(s.kept, other)
		}
	}
	s.kept[cluster] = fresh
}
