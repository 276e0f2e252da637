package catalogue

import (
	"cmp"
	"maps"
	"slices"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

const (
	// OfferedLimit is how many bytes names of add-ons and versions take in what a cluster is offered: each cluster of a seed has them.
	// 5,000 versions with usual names take half of it.
	OfferedLimit = 256 << 10
	// nameBytes is what JSON needs for a name besides its own bytes.
	nameBytes = 16
)

// shares are how many bytes of names each catalogue has in each add-on.
type shares map[string]map[string]int

func (s shares) add(addon, version, catalogue string) {
	if s[addon] == nil {
		s[addon] = map[string]int{catalogue: len(addon) + nameBytes}
	}
	s[addon][catalogue] += len(version) + nameBytes
}

// surplus are the add-ons without which the others take at most so many bytes. They are those of the largest catalogue, the largest first,
// until another one is as large: nobody crowds others out.
func (s shares) surplus(most int) map[string]bool {
	total, of, addons := 0, map[string]int{}, map[string][]string{}
	for addon, byCatalogue := range s {
		for catalogue, bytes := range byCatalogue {
			total, of[catalogue] = total+bytes, of[catalogue]+bytes
			addons[catalogue] = append(addons[catalogue], addon)
		}
	}
	left := map[string]bool{}
	if total <= most {
		return left
	}
	for catalogue, names := range addons {
		slices.SortFunc(names, func(a, b string) int {
			return cmp.Or(cmp.Compare(s[b][catalogue], s[a][catalogue]), cmp.Compare(a, b))
		})
	}
	names := slices.Sorted(maps.Keys(of))
	for total > most {
		catalogue := slices.MaxFunc(names, func(a, b string) int { return cmp.Compare(of[a], of[b]) })
		addon := addons[catalogue][0]
		addons[catalogue] = addons[catalogue][1:]
		if left[addon] {
			continue
		}
		left[addon] = true
		for catalogue, bytes := range s[addon] {
			total, of[catalogue] = total-bytes, of[catalogue]-bytes
		}
	}
	return left
}

// bound refuses add-ons of Custom catalogues that have too many versions, or too long names, for one offer.
func (m *merger) bound() {
	offered, have := shares{}, 0
	for name, addon := range m.Addons {
		if addon.Spec.Type == v1.CatalogueCore {
			continue
		}
		for version, origin := range addon.Origins {
			offered.add(name, version, origin.Catalogue)
			have += len(version) + nameBytes
		}
	}
	for name := range offered.surplus(OfferedLimit) {
		m.Refused[name] = &TooLargeError{
			Addon: name, What: "bytes of names of versions, with the other add-ons", Have: have, Limit: OfferedLimit,
			Contributors: m.Addons[name].Contributors,
		}
		delete(m.Addons, name)
	}
}
