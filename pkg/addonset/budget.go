package addonset

import (
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/budget"
)

// heldBytes hold MaxSets sets of MaxBytes, decoded.
const heldBytes = 64 << 20

// Budget bounds the sets in the master's cache. Of those outside of the platform's namespace the content is not read. A stub has what tells
// which set of type Core comes first.
func Budget(namespace string) budget.Kind[v1.AddonSet] {
	return budget.Kind[v1.AddonSet]{
		Most: heldBytes,
		// To write Core sets takes verb manage-core, and others must not get the core add-ons.
		IsAlwaysWhole: func(object *v1.AddonSet, _ int64) bool {
			return object.Spec.Type == v1.AddonSetCore && object.Namespace == namespace
		},
		IsForeign: func(object *v1.AddonSet) bool { return object.Namespace != namespace },
		Strip: func(object *v1.AddonSet) {
			object.Spec = v1.AddonSetSpec{
				Type: object.Spec.Type, Paused: object.Spec.Paused, Priority: object.Spec.Priority, Removal: object.Spec.Removal,
			}
		},
	}
}
