package catalogue

import (
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/budget"
)

// heldBytes hold what all Custom catalogues may have (mostOfAll), decoded, and what Core catalogues have beside. While a list is read
// again the master's manager may hold them twice.
const heldBytes = 96 << 20

// Budget bounds the catalogues in the master's cache. Of those outside of the platform's namespace the content is not read.
func Budget(namespace string) budget.Kind[v1.AddonCatalogue] {
	return budget.Kind[v1.AddonCatalogue]{
		Most: heldBytes,
		// To write Core catalogues takes verb manage-core, and others must not get their names.
		IsAlwaysWhole: func(object *v1.AddonCatalogue, _ int64) bool {
			return object.Spec.Type == v1.CatalogueCore && object.Namespace == namespace
		},
		IsForeign: func(object *v1.AddonCatalogue) bool { return object.Namespace != namespace },
		Strip:     func(object *v1.AddonCatalogue) { object.Spec.Addons = nil },
	}
}
