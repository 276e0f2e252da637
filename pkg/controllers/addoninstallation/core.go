package addoninstallation

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
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
