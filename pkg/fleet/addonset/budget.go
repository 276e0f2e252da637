package addonset

import (
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/budget"
)

// heldBytes is enough for MaxSets sets of MaxBytes, decoded.
const heldBytes = 64 << 20

// Budget bounds the sets in the master's cache. The content of sets outside of the platform's namespace is not read.
// A stub has the fields that decide which set of type Core comes first.
func Budget(namespace string) budget.Kind[v1.AddonSet] {
	return budget.Kind[v1.AddonSet]{
		Most: heldBytes, ReadIn: namespace,
		// Writing Core sets requires verb manage-core, and no other set may get the core add-ons.
		IsAlwaysWhole: func(object *v1.AddonSet, _ int64) bool { return object.Spec.Type == v1.AddonSetCore },
		Strip: func(object *v1.AddonSet) {
			object.Spec = v1.AddonSetSpec{
				Type: object.Spec.Type, Paused: object.Spec.Paused, Priority: object.Spec.Priority, Removal: object.Spec.Removal,
			}
		},
	}
}
