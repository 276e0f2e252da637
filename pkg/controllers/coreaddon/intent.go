package coreaddon

import (
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/installation"
)

// intent is what is applied for a core add-on.
func intent(namespace string, one wanted) installation.Intent {
	return installation.Intent{
		Namespace: namespace, Name: one.name, Origin: one.origin, Spec: one.spec, OwnsPaused: true,
		Labels:      map[string]string{v1.LabelManagedBy: v1.ManagedByCoreAddons},
		Annotations: map[string]string{v1.AnnotationCoreOrigin: one.origin},
		Finalizers:  []string{v1.FinalizerCoreProtection},
	}
}

// isApplied says whether an installation is as wanted, apart from what a cluster admin may add.
func isApplied(live *v1.AddonInstallation, one wanted) bool {
	wanted := intent(live.Namespace, one)
	digest, err := wanted.Digest()
	return err == nil && installation.IsRight(live, &wanted, digest)
}

// foreign is what others set where the set has nothing, as a patch that removes it; nil for none:
// a version, and what the core add-on would wait for.
func foreign(live *v1.AddonInstallation, one wanted) map[string]any {
	spec := map[string]any{}
	if one.spec.AddonRef.Version == "" && live.Spec.AddonRef.Version != "" {
		spec["addonRef"] = map[string]any{"version": nil, "digest": nil} // a digest is of an exact version
	}
	if len(live.Spec.DependsOn) > 0 {
		spec["dependsOn"] = nil
	}
	if len(spec) == 0 {
		return nil
	}
	return map[string]any{"spec": spec}
}
