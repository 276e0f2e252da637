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

// UsedVersion is a version that installations have, or wait for.
type UsedVersion struct {
	Addon string
	// Version is the Key of the version; empty for installations whose version is undecided.
	Version string
}

// SeedUsage counts the installations of a seed by version.
type SeedUsage struct {
	Seed string
	// LastSeen is the time of the count if the seed does not answer now, otherwise zero.
	LastSeen time.Time
	// Installations by version, all above 0.
	Installations map[UsedVersion]int
	// Others is the number of installations of other versions.
	Others int
}

// Of is the number of installations of these versions.
func (u SeedUsage) Of(versions []UsedVersion) int {
	sum := 0
	for _, version := range versions {
		sum += u.Installations[version]
	}
	return sum
}

// Offering is the spec of a catalogue of an author (see Author).
type Offering struct {
	Author string
	Spec   *v1.AddonCatalogueSpec
}

// Withdrawn lists the versions that only the first offering has. If a whole add-on is withdrawn, this includes its
// undecided version. Versions that are left out of the merge count on neither side.
func Withdrawn(owners Owners, before Offering, remaining ...Offering) []UsedVersion {
	stays, stayed := map[UsedVersion]bool{}, owners.merged(remaining)
	for _, one := range remaining {
		for _, offered := range offers(one.Spec) {
			stays[offered] = stays[offered] || stayed(one, offered.Addon)
		}
	}
	was := owners.merged(slices.Concat(remaining, []Offering{before}))
	return slices.DeleteFunc(offers(before.Spec), func(offered UsedVersion) bool {
		return stays[offered] || !was(before, offered.Addon)
	})
}

// merged returns a function that reports whether an add-on of one of the offerings is merged. A Core catalogue
// reserves its name; otherwise it belongs to its owners among those that offer it, if it has any.
func (o Owners) merged(all []Offering) func(of Offering, addon string) bool {
	reserved, owned := map[string]bool{}, map[string]bool{}
	for _, one := range all {
		for i := range one.Spec.Addons {
			name := string(one.Spec.Addons[i].Name)
			reserved[name] = reserved[name] || one.Spec.Type == v1.CatalogueCore
			owned[name] = owned[name] || slices.Contains(o[name], one.Author)
		}
	}
	return func(of Offering, addon string) bool {
		if reserved[addon] {
			return of.Spec.Type == v1.CatalogueCore
		}
		return !owned[addon] || slices.Contains(o[addon], of.Author)
	}
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

type usageRecord struct {
	LastSeen *time.Time `json:"lastSeen,omitempty"`
	// Addons: name -> version -> number of installations.
	Addons map[string]map[string]int `json:"addons"`
	Others int                       `json:"others,omitempty"`
}

// Encode encodes the usage without the seed's name. Equal usages give equal texts.
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

// EncodeWithin encodes within a limit in bytes: it moves the rarest versions to the others.
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

// DecodeUsage reads the result of Encode.
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
