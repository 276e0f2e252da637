package catalogue

import (
	"fmt"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/budget"
)

const (
	// heldBytes hold what all Custom catalogues may have (mostOfAll), decoded, and what Core catalogues have beside. While a list is read
	// again the master's manager may hold them twice.
	heldBytes = 96 << 20
	// mostReferences bytes of references to owners, and of finalizers, are kept of a stub: no API server bounds them.
	mostReferences = 8 << 10
	// ownerBytes are those of a reference without its texts.
	ownerBytes = 128
)

// Budget bounds the catalogues in the master's cache. Of those outside of the platform's namespace the content is not read.
func Budget(namespace string) budget.Kind[v1.AddonCatalogue] {
	return budget.Kind[v1.AddonCatalogue]{
		Most: heldBytes,
		// To write Core catalogues takes verb manage-core, and others must not get their names.
		IsAlwaysWhole: func(object *v1.AddonCatalogue, _ int64) bool {
			return object.Spec.Type == v1.CatalogueCore && object.Namespace == namespace
		},
		IsForeign: func(object *v1.AddonCatalogue) bool { return object.Namespace != namespace },
		Strip: func(object *v1.AddonCatalogue) {
			object.Spec.Addons = nil
			references, finalizers := 0, 0
			for _, one := range object.OwnerReferences {
				references += ownerBytes + len(one.APIVersion) + len(one.Kind) + len(one.Name) + len(one.UID)
			}
			for _, one := range object.Finalizers {
				finalizers += len(one)
			}
			if references > mostReferences {
				object.OwnerReferences = nil
			}
			if finalizers > mostReferences {
				object.Finalizers = nil
			}
		},
	}
}

// HeldError says that a manager has no room for a catalogue.
type HeldError struct {
	Catalogue string
	// Bytes that it takes in memory.
	Bytes int64
	// Version that is read again, since there is room by now; empty: there is none.
	Version string
}

func (e *HeldError) Error() string {
	text := fmt.Sprintf("catalogue %q is not read: it takes %d KiB of memory, and all catalogues together fill the manager's %d MiB for "+
		"them; the seeds keep what they have of it", e.Catalogue, e.Bytes>>10, heldBytes>>20)
	if e.Version != "" {
		return text + ": there is room now, and it is read again (resourceVersion " + e.Version + ")"
	}
	return text + ": delete catalogues that are not needed, or make this one smaller"
}
