package addoninstallation

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/conditions"
)

// What is different for core add-ons; the core add-on controller makes and guards their installations.

// isRemoved says whether an installation is to go. A core add-on that somebody deletes lives on while it is protected.
func isRemoved(installation *kubermaticv1.AddonInstallation) bool {
	return !installation.DeletionTimestamp.IsZero() && !isProtected(installation)
}

func isProtected(installation *kubermaticv1.AddonInstallation) bool {
	return installation.Spec.CoreAddon && slices.Contains(installation.Finalizers, kubermaticv1.FinalizerCoreProtection)
}

// protectionChanged: finalizers change no generation, and a core add-on that loses its protection while it is being deleted
// is to be removed.
func protectionChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(update event.UpdateEvent) bool {
		before, isInstallation := update.ObjectOld.(*kubermaticv1.AddonInstallation)
		after, isInstallationToo := update.ObjectNew.(*kubermaticv1.AddonInstallation)
		return isInstallation && isInstallationToo && isProtected(before) != isProtected(after)
	}}
}

// projectProtection tells why a core add-on that is being deleted stays.
func projectProtection(f *facts) {
	if !f.installation.DeletionTimestamp.IsZero() {
		conditions.True(&f.installation.Status.Conditions, f.installation.Generation, kubermaticv1.ConditionDeletionBlocked,
			kubermaticv1.ReasonInCoreSet, kubermaticv1.DeletionBlockedMessage)
	}
}

// projectRelease ends that once it may go.
func projectRelease(f *facts) {
	list := &f.installation.Status.Conditions
	if meta.IsStatusConditionTrue(*list, kubermaticv1.ConditionDeletionBlocked) {
		conditions.False(list, f.installation.Generation, kubermaticv1.ConditionDeletionBlocked, kubermaticv1.ReasonRemoving, "")
	}
}
