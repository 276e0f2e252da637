package cli

import (
	"cmp"
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// platformNamespace is that of the charts, unless the caller names another.
const platformNamespace = "kubermatic"

const masterHint = "choose the context of the master with --context, and its platform namespace with --namespace"

// Master connects to the context's API server, which has to be that of the master, and returns the platform namespace:
// that of --namespace, or the charts' default. A seed is a master too if it counts the installations of seeds.
func (t *Tool) Master(ctx context.Context) (found *Platform, namespace string, err error) {
	if found, err = t.WithSets(ctx); err != nil {
		return nil, "", err
	}
	namespace = cmp.Or(*t.connection.Namespace, platformNamespace)
	if found.IsMaster {
		return found, namespace, nil
	}
	err = found.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v1.ConfigMapUsage}, &corev1.ConfigMap{})
	if apierrors.IsNotFound(err) {
		return nil, "", Fail(ExitContext, masterHint, "%s is a seed without ConfigMap %q in namespace %q, which a master has",
			found.Server, v1.ConfigMapUsage, namespace)
	}
	return found, namespace, err
}
