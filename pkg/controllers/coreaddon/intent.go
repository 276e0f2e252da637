package coreaddon

import (
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
)

// intent is the object that is applied for a core add-on.
func intent(namespace string, one wanted) installation.Intent {
	return installation.Intent{
		Namespace: namespace, Name: one.name, Origin: one.origin, Spec: one.spec, OwnsPaused: true,
		Labels:      map[string]string{v1.LabelManagedBy: v1.ManagedByCoreAddons},
		Annotations: map[string]string{v1.AnnotationCoreOrigin: one.origin},
		Finalizers:  []string{v1.FinalizerCoreProtection},
	}
}

// isApplied reports whether an installation is as desired, ignoring fields that a cluster admin may add.
func isApplied(live *v1.AddonInstallation, one wanted) bool {
	wanted := intent(live.Namespace, one)
	digest, err := wanted.Digest()
	return err == nil && installation.IsRight(live, &wanted, digest)
}

// foreign is a patch that removes fields which other clients set and the set leaves empty: the version, and the
// dependencies that the core add-on would wait for. Nil if there are none.
func foreign(live *v1.AddonInstallation, one wanted) map[string]any {
	spec := map[string]any{}
	if one.spec.AddonRef.Version == "" && live.Spec.AddonRef.Version != "" {
		spec["addonRef"] = map[string]any{"version": nil, "digest": nil} // a digest belongs to an exact version
	}
	if len(live.Spec.DependsOn) > 0 {
		spec["dependsOn"] = nil
	}
	if len(spec) == 0 {
		return nil
	}
	return map[string]any{"spec": spec}
}
