package addoninstallation

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/ownership"
)

// nameOf finds the name of the installation in a cluster whose objects carry an ID; "" where there is none, or none any more.
// Where that can't be told the ID stands for the name: nothing is taken from what may still exist. It outlives a pass and reads
// from the cache, so it has no context of one.
func (r *Reconciler) nameOf(namespace string, origin types.UID, id string) string {
	list := &kubermaticv1.AddonInstallationList{} // shared with the cache, and only read
	err := r.Client.List(context.Background(), list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
	if err != nil {
		return id
	}
	for i := range list.Items {
		if (ownership.Owner{ClusterUID: origin, Installation: list.Items[i].Name}).ID() == id {
			return list.Items[i].Name
		}
	}
	return ""
}
