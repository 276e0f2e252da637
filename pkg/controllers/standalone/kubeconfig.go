package standalone

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
)

// findSecret waits for the kubeconfig; without one the API server counts as down.
func (r *Reconciler) findSecret(ctx context.Context, f *facts) *loop.Outcome {
	found := loop.Metadata(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: f.namespace(), Name: kubeconfigSecret}, found)
	if apierrors.IsNotFound(err) {
		f.cluster.Status.ExtendedHealth.APIServer = kkpv1.HealthDown
		return waiting(fmt.Sprintf("no Secret %q in namespace %q yet", kubeconfigSecret, f.namespace()), 0)
	}
	if err != nil {
		return failure(ctx, fmt.Errorf("getting Secret %q of namespace %q: %w", kubeconfigSecret, f.namespace(), err))
	}
	f.secretVersion = found.ResourceVersion
	return nil
}
