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

// KindKKPAddon is the kind of the add-ons that KKP itself applies (sdk/apis/kubermatic/v1/addon.go of KKP).
var KindKKPAddon = schema.GroupKind{Group: kkpv1.GroupVersion.Group, Kind: "Addon"}

// KKPAddonFinalizer is what has KKP delete the manifests of an Addon that is deleted
// (pkg/controller/seed-controller-manager/addon of KKP; the name carries no domain).
const KKPAddonFinalizer = "cleanup-manifests"

// KKPAddon is the metadata of KKP's own Addon of a name in a cluster: nil where there is none, or where the seed does
// not serve the kind. It is read from the cache.
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
