package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/pkg/target"
)

// KubeconfigKey is the key of the kubeconfig in its Secret (pkg/resources/resources.go of KKP).
const KubeconfigKey = "kubeconfig"

// KubeconfigSecrets are the Secrets with a kubeconfig in a cluster namespace, best first: KKP's
// internal one, which leads straight to the API server, and the users' one.
func KubeconfigSecrets() []string {
	return []string{"internal-admin-kubeconfig", "admin-kubeconfig"}
}

type NoKubeconfigError struct{ Namespace string }

func (e *NoKubeconfigError) Error() string {
	return fmt.Sprintf("namespace %q has no Secret %q with key %q", e.Namespace, KubeconfigSecrets()[0], KubeconfigKey)
}

// ReadKubeconfig reads the kubeconfig of a cluster, unchecked. The error is a NoKubeconfigError, or
// the reader's.
func ReadKubeconfig(ctx context.Context, reader client.Reader, cluster target.Ref) ([]byte, error) {
	for _, name := range KubeconfigSecrets() {
		var secret corev1.Secret
		err := reader.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: name}, &secret)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading Secret %q: %w", cluster.Namespace+"/"+name, err)
		}
		if data := secret.Data[KubeconfigKey]; !apierrors.IsNotFound(err) && len(data) > 0 {
			return data, nil
		}
	}
	return nil, &NoKubeconfigError{Namespace: cluster.Namespace}
}
