package catalogue

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// What a Difference does to its version or add-on.
const (
	DifferenceAdded   = "Added"
	DifferenceRemoved = "Removed"
	DifferenceChanged = "Changed"
)

// Difference is a difference between two merges.
type Difference struct {
	UsedVersion
	// Named is the version as the catalogue spells it; empty for the whole add-on: that it is removed, or its description or place changed.
	Named string
	// What is one of the constants.
	What string
	// Why says what of it changed; may be empty.
	Why string
}

// Differences are all differences between two merges, by add-on, newest version first. The seeds keep the former object of
// an add-on that the second merge refuses, so it has none.
func Differences(before, after Merged) (found []Difference) {
	names := maps.Clone(before.Addons)
	maps.Copy(names, after.Addons)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if after.Refused[name] == nil {
			found = append(found, differencesOf(name, before.Addons[name], after.Addons[name])...)
		}
	}
	return found
}

func differencesOf(name string, before, after *MergedAddon) (found []Difference) {
	add := func(version, what, why string) {
		found = append(found, Difference{UsedVersion: UsedVersion{Addon: name}, Named: version, What: what, Why: why})
		if version != "" {
			found[len(found)-1].Version = Key(version)
		}
	}
	switch {
	case after == nil:
		add("", DifferenceRemoved, "no catalogue has it any more")
	case before != nil && before.Spec.Type != after.Spec.Type:
		add("", DifferenceChanged, "type "+string(after.Spec.Type)+" instead of "+string(before.Spec.Type))
	case before != nil && !equality.Semantic.DeepEqual(about(before), about(after)):
		add("", DifferenceChanged, "name, description, slot or namespace")
	}
	was, is, all := digestsOf(before), digestsOf(after), versionsOf(before)
	maps.Copy(all, versionsOf(after))
	newestFirst := func(a, b v1.AddonVersion) int { return Compare(b.Version, a.Version) }
	for _, version := range slices.SortedFunc(maps.Values(all), newestFirst) {
		key := Key(version.Version)
		switch {
		case was[key] == "":
			add(version.Version, DifferenceAdded, "")
		case is[key] == "":
			add(version.Version, DifferenceRemoved, "")
		case was[key] != is[key]:
			why := "constraints, deprecation, draft or spelling"
			if contentOf(versionsOf(before)[key]) != contentOf(versionsOf(after)[key]) {
				why = "what it installs"
			}
			add(version.Version, DifferenceChanged, why)
		}
	}
	return found
}

// about is a merged add-on without its versions.
func about(addon *MergedAddon) v1.Addon {
	made := addon.Spec.Addons[0]
	made.Versions = nil
	return made
}

// digestsOf are those of a merged add-on's versions by key; none for nil.
func digestsOf(addon *MergedAddon) map[string]string {
	digests := map[string]string{}
	if addon != nil {
		for version, origin := range addon.Origins {
			digests[Key(version)] = origin.Digest
		}
	}
	return digests
}
