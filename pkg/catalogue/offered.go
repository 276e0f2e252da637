package catalogue

import (
	"cmp"
	"maps"
	"slices"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

const (
	// OfferedLimit is the maximum size of the names of add-ons and versions in an available catalogue, in bytes: each
	// cluster of a seed has one. 5,000 versions with usual names take half of it.
	OfferedLimit = 256 << 10
	// NotListed is in the message of Ready of an available catalogue that does not list all versions that fit.
	NotListed = "of the largest catalogues not listed"
	// nameBytes is the size that JSON needs for a name, in addition to its own bytes.
	nameBytes = 16
)

// origin is an add-on in one catalogue, as admins wrote it.
type origin struct{ addon, catalogue string }

// surplus are the origins to leave out, so that the others take at most so many bytes: those of the largest
// catalogue, its largest add-on first, until another catalogue is as large.
func surplus(sizes map[origin]int, most int) map[origin]bool {
	total, of, largest := 0, map[string]int{}, map[string][]origin{}
	for one, bytes := range sizes {
		total, of[one.catalogue] = total+bytes, of[one.catalogue]+bytes
		largest[one.catalogue] = append(largest[one.catalogue], one)
	}
	left := map[origin]bool{}
	if total <= most {
		return left
	}
	for _, all := range largest {
		slices.SortFunc(all, func(a, b origin) int { return cmp.Or(cmp.Compare(sizes[b], sizes[a]), cmp.Compare(a.addon, b.addon)) })
	}
	names := slices.Sorted(maps.Keys(of))
	for total > most {
		catalogue := slices.MaxFunc(names, func(a, b string) int { return cmp.Compare(of[a], of[b]) })
		one := largest[catalogue][0]
		largest[catalogue] = largest[catalogue][1:]
		left[one], total, of[catalogue] = true, total-sizes[one], of[catalogue]-sizes[one]
	}
	return left
}

// bound leaves out versions of catalogues that are too large. They can still be installed, by their exact name or a
// range, and the query endpoint lists them.
func (a *Availability) bound(entries []*Entry) {
	sizes, origins := map[origin]int{}, map[v1.AddonName]*Entry{}
	for _, entry := range entries {
		origins[entry.Addon.Name] = entry
	}
	of := func(addon *v1.Addon, version string) origin {
		found := origins[addon.Name].find(version).stored
		return origin{string(addon.Name), cmp.Or(found.Git, found.Catalogue)} // one catalogue in git may have many generated ones
	}
	for i := range a.Addons {
		for _, version := range a.Addons[i].Versions {
			sizes[of(&a.Addons[i], version.Version)] += len(version.Version) + nameBytes
		}
	}
	for one := range sizes {
		sizes[one] += len(one.addon) + nameBytes
	}
	left := surplus(sizes, OfferedLimit)
	if len(left) == 0 {
		return
	}
	for i := range a.Addons {
		addon := &a.Addons[i]
		before := len(addon.Versions)
		addon.Versions = slices.DeleteFunc(addon.Versions, func(one v1.AddonVersion) bool { return left[of(addon, one.Version)] })
		a.LeftOut += before - len(addon.Versions)
	}
	a.Addons = slices.DeleteFunc(a.Addons, func(addon v1.Addon) bool { return len(addon.Versions) == 0 })
	a.Versions -= int32(a.LeftOut) // at most a.Versions
}
