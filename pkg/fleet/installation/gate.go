package installation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// MayGate says whether upgrades of Kubernetes wait for an installation, if its add-on has a slot: they wait for those
// that the platform creates and manages.
func MayGate(one *v1.AddonInstallation) bool {
	isOurs := one.Spec.CoreAddon || one.Labels[v1.LabelSet] != ""
	return isOurs && !one.Spec.Paused && one.Spec.ReconcileStrategy != v1.ReconcileOnce && one.DeletionTimestamp.IsZero()
}

// Lacks says why an installation is not Ready for the Kubernetes version of its cluster; empty if it is. fits says
// whether a version of its add-on fits the cluster: it decides if the applied version has no Kubernetes version, or
// is pinned.
func Lacks(one *v1.AddonInstallation, kubernetes string, fits func(version string) bool) string {
	applied := one.Status.LastApplied
	if !IsReady(one) {
		if ready := meta.FindStatusCondition(one.Status.Conditions, v1.ConditionReady); ready != nil && ready.Status != metav1.ConditionTrue {
			return ready.Reason
		}
		return "not Ready"
	}
	isPinned := one.Spec.AddonRef.Digest != ""
	switch {
	case applied == nil:
		return "nothing was applied"
	case applied.K8sVersion == kubernetes:
		return ""
	case applied.K8sVersion != "" && !isPinned:
		return "rendered for Kubernetes " + applied.K8sVersion
	case !fits(one.Status.Version):
		return fmt.Sprintf("version %s does not fit", one.Status.Version)
	}
	return ""
}
