package catalogue

import (
	"cmp"
	"encoding/json"
	"slices"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

const coreMessage = "core add-ons are installed by the platform and not offered to users"

// excludedLimit is how many excluded versions an available catalogue lists; it counts all.
const excludedLimit = 200

type Availability struct {
	// Addons have names and version strings only: sorted by name, versions newest first.
	Addons   []v1.Addon
	Versions int32
	// Excluded lists at most 200 excluded versions, sorted by add-on and version.
	Excluded []v1.ExcludedVersion
	// ExcludedCount is the number of all excluded versions.
	ExcludedCount int32
	Digest        string
}

// Available decides what a platform is offered, in whatever order the entries come. Entries of
// NewEntry give no error.
func Available(entries []*Entry, platform Platform) (Availability, error) {
	sorted := slices.Clone(entries)
	slices.SortFunc(sorted, func(a, b *Entry) int { return cmp.Compare(a.Addon.Name, b.Addon.Name) })
	var found Availability
	check := newPlatformCheck(platform)
	for _, entry := range sorted {
		found.add(entry, check)
	}
	encoded, err := json.Marshal(found)
	if err != nil { // Texts and numbers always encode.
		return Availability{}, err
	}
	found.Digest = digestOf(encoded)
	return found, nil
}

func (a *Availability) add(entry *Entry, check *platformCheck) {
	compact := v1.Addon{Name: entry.Addon.Name}
	for _, version := range entry.versions {
		reason, message := v1.ExcludedCore, coreMessage
		if entry.Type != v1.CatalogueCore {
			reason, message = check.fits(version.kkp, version.k8s)
		}
		if reason == "" {
			compact.Versions = append(compact.Versions, v1.AddonVersion{Version: version.version.Version})
			continue
		}
		a.exclude(v1.ExcludedVersion{
			Addon: string(entry.Addon.Name), Version: version.version.Version, Reason: reason, Message: message,
		})
	}
	if len(compact.Versions) > 0 {
		a.Addons = append(a.Addons, compact)
		a.Versions += int32(len(compact.Versions)) // at most 128 by the schema
	}
}

func (a *Availability) exclude(version v1.ExcludedVersion) {
	a.ExcludedCount++
	if len(a.Excluded) < excludedLimit {
		a.Excluded = append(a.Excluded, version)
	}
}
