package catalogue

import (
	"slices"
	"strings"
)

// Change is a version of an add-on that has other content than before under the same name.
type Change struct {
	Addon, Version string
	// Catalogue is the name of the catalogue that has it now.
	Catalogue string
}

// Changes are the versions that two merges have with different content, by add-on and in the order of their versions,
// newest first. Identity is name and version, so these are changes of what a version is.
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
		for i := range addon.Spec.Addons[0].Versions {
			version := addon.Spec.Addons[0].Versions[i].Version
			origin := addon.Origins[version]
			if digest, ok := digests[Key(version)]; ok && digest != origin.Digest {
				changes = append(changes, Change{Addon: name, Version: version, Catalogue: origin.Catalogue})
			}
		}
	}
	slices.SortStableFunc(changes, func(a, b Change) int { return strings.Compare(a.Addon, b.Addon) })
	return changes
}
