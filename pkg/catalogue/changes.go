package catalogue

import (
	"slices"
	"strings"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Change is a version whose content changed under the same name.
type Change struct {
	Addon, Version string
	// Catalogue has the version now.
	Catalogue string
	// About says that only constraints or deprecation changed, not what is installed.
	About bool
}

// Changes are the versions with different content in two merges, by add-on, newest first. Versions
// are the same if their names are.
func Changes(before, after Merged) []Change {
	var changes []Change
	for name, addon := range after.Addons {
		was := before.Addons[name]
		if was == nil || was.Digest == addon.Digest {
			continue
		}
		digests := make(map[string]string, len(was.Origins))
		for version, origin := range was.Origins {
			digests[Key(version)] = origin.Digest
		}
		versions := versionsOf(was)
		for i := range addon.Spec.Addons[0].Versions {
			version := addon.Spec.Addons[0].Versions[i].Version
			origin := addon.Origins[version]
			if digest, ok := digests[Key(version)]; ok && digest != origin.Digest {
				changes = append(changes, Change{
					Addon: name, Version: version, Catalogue: origin.Catalogue,
					About: contentOf(versions[Key(version)]) == contentOf(addon.Spec.Addons[0].Versions[i]),
				})
			}
		}
	}
	slices.SortStableFunc(changes, func(a, b Change) int { return strings.Compare(a.Addon, b.Addon) })
	return changes
}

func versionsOf(addon *MergedAddon) map[string]v1.AddonVersion {
	versions := make(map[string]v1.AddonVersion, len(addon.Spec.Addons[0].Versions))
	for _, version := range addon.Spec.Addons[0].Versions {
		versions[Key(version.Version)] = version
	}
	return versions
}

// contentOf is the digest of what a version installs, without its spelling and the clusters it is
// for.
func contentOf(version v1.AddonVersion) string {
	version.Version, version.Constraints, version.Deprecated = "", nil, ""
	digest, _, _ := measure(&version) // what can't be encoded is in no merged catalogue
	return digest
}
