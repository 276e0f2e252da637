package standalone

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/loop"
)

// findSecret waits for the kubeconfig; without one the API server counts as down.
func (r *Reconciler) findSecret(ctx context.Context, f *facts) loop.Outcome {
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
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

// probeTheAPIServer takes over what the last probe found. A version once known stays while the API server is down, and while the
// kubeconfig leads to another user cluster.
func (r *Reconciler) probeTheAPIServer(ctx context.Context, f *facts) loop.Outcome {
	finding, known := r.prober.look(question{
		cluster:   cluster.Identity{Name: f.cluster.Name, UID: f.cluster.UID},
		confirmed: f.cluster.Annotations[v1.AnnotationConfirmCluster], secretVersion: f.secretVersion,
	}, f.namespace())
	if !known {
		return waiting("the API server is being asked for its version", r.Interval)
	}
	status := &f.cluster.Status
	status.ExtendedHealth.APIServer = kkpv1.HealthDown
	if finding.answers {
		status.ExtendedHealth.APIServer = kkpv1.HealthUp
	}
	if finding.version != "" {
		status.Versions.ControlPlane = strings.TrimPrefix(finding.version, "v")
	}
	return loop.Done{Recheck: r.Interval}
}
