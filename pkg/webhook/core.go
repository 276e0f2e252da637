package webhook

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/target"
)

// Cleaners are the cluster's own users that delete objects, as in the charts' policies.
func Cleaners() []string {
	return []string{
		"system:serviceaccount:kube-system:namespace-controller",
		"system:serviceaccount:kube-system:generic-garbage-collector",
		"system:kube-controller-manager",
	}
}

// deletion refuses the deletion of a core installation that its cluster needs, which its finalizer
// shows: the core add-on controller removes the finalizer first. If anything is unknown, it allows
// the request, as the finalizer holds the installation anyway.
func (i *Installations) deletion(ctx context.Context, request admission.Request, object *v1.AddonInstallation) admission.Response {
	switch {
	case !object.Spec.CoreAddon, object.DeletionTimestamp != nil, slices.Contains(Cleaners(), request.UserInfo.Username):
		return allowed()
	case i.isGoing(ctx, request.Namespace), !slices.Contains(object.Finalizers, v1.FinalizerCoreProtection):
		return allowed()
	}
	cluster, err := i.Clusters.Find(ctx, target.InstalledIn(object))
	if err != nil || cluster.Deleted {
		return allowed()
	}
	return forbidden(fmt.Sprintf("%s is a core add-on of cluster %q, which needs it: it would be made again. To remove it for good, "+
		"take it out of the set of core add-ons: out of ConfigMap custom-core-addons in the platform namespace of this seed, "+
		"or by the setting of the Cluster that asks for it", name(request, object.Name, ""), cluster.Name))
}

func (i *Installations) isGoing(ctx context.Context, namespace string) bool {
	var found corev1.Namespace
	err := i.Reader.Get(ctx, client.ObjectKey{Name: namespace}, &found)
	return err != nil || found.DeletionTimestamp != nil
}
