package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	"github.com/trellis-addons/trellis/pkg/target"
)

// KindKKPAddon is the kind of KKP's own add-ons (sdk/apis/kubermatic/v1/addon.go of KKP).
var KindKKPAddon = schema.GroupKind{Group: kkpv1.GroupVersion.Group, Kind: "Addon"}

// KKPAddonFinalizer makes KKP delete an Addon's manifests when the Addon is deleted
// (pkg/controller/seed-controller-manager/addon of KKP).
const KKPAddonFinalizer = "cleanup-manifests"

// KKPAddon is the cached metadata of KKP's Addon of a name in a cluster. It is nil if there is
// none, or if the seed does not serve the kind.
func (p *Platform) KKPAddon(ctx context.Context, cluster target.Ref, name string) (*metav1.PartialObjectMetadata, error) {
	served, err := p.kinds.version(KindKKPAddon)
	if err != nil || served == nil {
		return nil, err
	}
	addon := asMetadata(*served)
	key := types.NamespacedName{Namespace: cluster.Namespace, Name: name}
	err = p.objects.Get(ctx, key, addon)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading KKP's Addon %q: %w", key, err)
	}
	return addon, nil
}
