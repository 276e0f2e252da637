package addon

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/status"
)

// statusOf is our part of an available catalogue's status. The condition's time stays while it says the same.
func statusOf(object *v1.AddonCatalogue, offer *catalogue.Availability) v1.AddonCatalogueStatus {
	ours := v1.AddonCatalogueStatus{
		ObservedGeneration: object.Generation,
		Addons:             int32(len(offer.Addons)), // one for each merged object
		Versions:           offer.Versions,
		Excluded:           offer.Excluded,
		ExcludedCount:      offer.ExcludedCount,
	}
	if before := meta.FindStatusCondition(object.Status.Conditions, v1.ConditionReady); before != nil {
		ours.Conditions = append(ours.Conditions, *before)
	}
	status.True(&ours.Conditions, object.Generation, v1.ConditionReady, v1.ReasonSelected,
		fmt.Sprintf("%d versions of %d add-ons fit this cluster; %d versions are left out", offer.Versions,
			len(offer.Addons), offer.ExcludedCount))
	return ours
}
