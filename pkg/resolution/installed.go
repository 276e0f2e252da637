package resolution

import v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"

// InstalledVersion is the version that the user cluster has of the add-on that an installation asks for, as its status says; "" where
// it has none of it. It is what the controller goes by for downgrades, so whoever answers before it does asks here.
func InstalledVersion(installation *v1.AddonInstallation) string {
	applied := installation.Status.LastApplied
	switch {
	case applied == nil:
		return ""
	case applied.Addon == "": // written by an earlier release, which showed in status.version what was resolved
		return applied.Version
	case applied.Addon != string(installation.Spec.AddonRef.Name):
		return ""
	}
	return installation.Status.Version
}
