package catalogue

import (
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/budget"
)

// heldBytes is the maximum size of all Custom catalogues (mostOfAll), decoded, plus that of Core catalogues. While
// the manager of the master lists again, it may hold them twice.
const heldBytes = 96 << 20

// Budget limits the catalogues in the master's cache. Catalogues outside of the platform's namespace are held without
// their content.
func Budget(namespace string) budget.Kind[v1.AddonCatalogue] {
	return budget.Kind[v1.AddonCatalogue]{
		Most: heldBytes, ReadIn: namespace,
		// Writing Core catalogues requires verb manage-core, and other catalogues must not get their names.
		IsAlwaysWhole: func(object *v1.AddonCatalogue, _ int64) bool { return object.Spec.Type == v1.CatalogueCore },
		Strip:         func(object *v1.AddonCatalogue) { object.Spec.Addons = nil },
	}
}
