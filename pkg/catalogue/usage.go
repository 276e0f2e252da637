package catalogue

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// UsedVersion is a version of an add-on that installations have, or wait for.
type UsedVersion struct {
	Addon string
	// Version is the Key of the version; empty for installations whose version is not decided yet.
	Version string
}

// SeedUsage says how many installations on one seed have which versions.
type SeedUsage struct {
	Seed string
	// LastSeen is zero while the seed answers, else when it did last: the count is of that time.
	LastSeen time.Time
	// Installations by version, none of them 0.
	Installations map[UsedVersion]int
	// Others is the number of installations of other versions.
	Others int
}

// Of is the number of installations that have one of the versions.
func (u SeedUsage) Of(versions []UsedVersion) int {
	sum := 0
	for _, version := range versions {
		sum += u.Installations[version]
	}
	return sum
}

// Withdrawn lists what the first spec offers and none of the others does. Where a whole add-on goes, its installations
// without a decided version are in question too.
func Withdrawn(before *v1.AddonCatalogueSpec, remaining ...*v1.AddonCatalogueSpec) []UsedVersion {
	stays := map[UsedVersion]bool{}
	for _, spec := range remaining {
		for _, offered := range offers(spec) {
			stays[offered] = true
		}
	}
	return slices.DeleteFunc(offers(before), func(offered UsedVersion) bool { return stays[offered] })
}

func offers(spec *v1.AddonCatalogueSpec) []UsedVersion {
	var found []UsedVersion
	for i := range spec.Addons {
		name := string(spec.Addons[i].Name)
		found = append(found, UsedVersion{Addon: name})
		for _, version := range spec.Addons[i].Versions {
			found = append(found, UsedVersion{name, Key(version.Version)})
		}
	}
	return found
}

// usageRecord is a SeedUsage at rest.
type usageRecord struct {
	LastSeen *time.Time `json:"lastSeen,omitempty"`
	// Addons: name -> version -> number of installations.
	Addons map[string]map[string]int `json:"addons"`
	Others int                       `json:"others,omitempty"`
}

// Encode writes the usage down for DecodeUsage, without the seed's name; equal usages give equal texts.
func (u SeedUsage) Encode() string {
	record := usageRecord{Addons: map[string]map[string]int{}, Others: u.Others}
	if !u.LastSeen.IsZero() {
		at := u.LastSeen.UTC().Truncate(time.Second)
		record.LastSeen = &at
	}
	for used, number := range u.Installations {
		if record.Addons[used.Addon] == nil {
			record.Addons[used.Addon] = map[string]int{}
		}
		record.Addons[used.Addon][used.Version] = number
	}
	encoded, err := json.Marshal(record)
	if err != nil { // Texts and numbers always encode.
		return ""
	}
	return string(encoded)
}

// EncodeWithin is Encode in so many bytes: versions with the fewest installations are counted among the others until it fits.
func (u SeedUsage) EncodeWithin(limit int) string {
	text := u.Encode()
	if len(text) <= limit {
		return text
	}
	most := slices.SortedFunc(maps.Keys(u.Installations), func(a, b UsedVersion) int {
		return cmp.Or(cmp.Compare(u.Installations[b], u.Installations[a]), cmp.Compare(a.Addon, b.Addon), cmp.Compare(a.Version, b.Version))
	})
	for stay := len(most) / 2; ; stay /= 2 {
		kept := SeedUsage{LastSeen: u.LastSeen, Installations: map[UsedVersion]int{}, Others: u.Others}
		for i, version := range most {
			if i < stay {
				kept.Installations[version] = u.Installations[version]
				continue
			}
			kept.Others += u.Installations[version]
		}
		if text := kept.Encode(); len(text) <= limit || stay == 0 {
			return text
		}
	}
}

// DecodeUsage reads what Encode wrote about a seed.
func DecodeUsage(seed, text string) (SeedUsage, error) {
	var record usageRecord
	if err := json.Unmarshal([]byte(text), &record); err != nil {
		return SeedUsage{}, fmt.Errorf("reading the usage of seed %q: %w", seed, err)
	}
	usage := SeedUsage{Seed: seed, Installations: map[UsedVersion]int{}, Others: record.Others}
	if record.LastSeen != nil {
		usage.LastSeen = *record.LastSeen
	}
	for addon, versions := range record.Addons {
		for version, number := range versions {
			usage.Installations[UsedVersion{addon, version}] = number
		}
	}
	return usage, nil
}
