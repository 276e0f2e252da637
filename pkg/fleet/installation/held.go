package installation

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// HeldAtMost is the longest time that foreign finalizers delay the end of a set, or of a Cluster, from the deletion
// of the installation that has them.
const HeldAtMost = time.Hour

// Foreign are the finalizers of an installation that are neither ours nor Kubernetes' own. Their controllers remove these.
func Foreign(live *v1.AddonInstallation) []string {
	var found []string
	for _, one := range live.Finalizers {
		switch {
		case one == v1.FinalizerCleanupInstallation, one == metav1.FinalizerDeleteDependents, one == metav1.FinalizerOrphanDependents:
		case one == v1.FinalizerCoreProtection && live.Spec.CoreAddon: // on any other, no controller removes it
		default:
			found = append(found, one)
		}
	}
	return found
}
