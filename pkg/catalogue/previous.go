package catalogue

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Previous are, by add-on and owner, digests of the versions that the owner had when another one took the add-on over.
// The previous owner keeps these versions, and can't add or change any, until it is the first owner again.
type Previous map[string]map[string][]string

// previousLimit is the maximum size of all of them in etcd, in bytes. Beyond it, a previous owner keeps nothing.
const previousLimit = 256 << 10

// Encode is a text for ConfigMap v1.ConfigMapOwners.
func (f Previous) Encode() string {
	var lines []string
	for _, addon := range slices.Sorted(maps.Keys(f)) {
		for _, owner := range slices.Sorted(maps.Keys(f[addon])) {
			lines = append(lines, previousLine(addon, owner, f[addon][owner]))
		}
	}
	return strings.Join(lines, "\n")
}

func previousLine(addon, owner string, parts []string) string {
	return strings.Join(append([]string{addon, owner}, parts...), " ")
}

// DecodePrevious reads the result of Encode, and omits invalid parts.
func DecodePrevious(text string) Previous {
	found := Previous{}
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) >= 2 {
			found.set(fields[0], fields[1], fields[2:])
		}
	}
	return found
}

func (f Previous) set(addon, owner string, parts []string) {
	if f[addon] == nil {
		f[addon] = map[string][]string{}
	}
	f[addon][owner] = parts
}

// partOf is a digest of one part of an add-on: a version and its content, or its slot and namespace.
func partOf(what ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(what, "\n")))
	return hex.EncodeToString(sum[:8])
}

func placeOf(addon *v1.Addon) string {
	if addon.CreateNamespace {
		return partOf("place", string(addon.Slot), addon.TargetNamespace, "create")
	}
	return partOf("place", string(addon.Slot), addon.TargetNamespace)
}

// freeze limits the owners behind the one that took an add-on over to the versions that they had then.
func (m *merger) freeze(name string, owners []string) {
	isBehind := false
	for i, owner := range owners {
		parts, isPrevious := m.claims.Previous[name][owner]
		takes := m.claims.TakeOver[owner][name]
		if isBehind && !isPrevious {
			parts, isPrevious = m.had(name, owner)
		}
		if i == 0 || takes || !isPrevious {
			isBehind = isBehind || takes
			continue
		}
		m.Previous.set(name, owner, parts)
		if m.reserved[name] == nil { // a Core catalogue may have the owner's name
			m.only(name, owner, owners[0], parts)
		}
	}
}

// had are the parts of an add-on that an owner offers. False: they are unknown at present.
func (m *merger) had(name, owner string) (parts []string, isKnown bool) {
	for _, offer := range m.offers[name] {
		if offer.source.author() != owner {
			continue
		}
		parts = append(parts, placeOf(offer.addon.addon))
		for _, version := range offer.addon.versions {
			parts = append(parts, partOf(version.key, contentOf(*version.version)))
		}
	}
	slices.Sort(parts)
	isKnown = len(parts) > 0 || !m.claims.Held[owner] && !slices.Contains(m.brought[name], owner)
	if !isKnown {
		return nil, false
	}
	size := len(previousLine(name, owner, parts))
	if m.previous+size > previousLimit {
		return nil, true
	}
	m.previous += size
	return parts, true
}

// only leaves out the parts that a previous owner did not have.
func (m *merger) only(name, owner, wonBy string, parts []string) {
	for i, offer := range m.offers[name] {
		if offer.source.author() != owner {
			continue
		}
		left := *offer.addon
		if !slices.Contains(parts, placeOf(left.addon)) {
			about := *left.addon
			about.Slot, about.TargetNamespace, about.CreateNamespace = "", "", false
			left.addon = &about
		}
		left.versions = slices.DeleteFunc(slices.Clone(left.versions), func(version sourceVersion) bool {
			isNew := !slices.Contains(parts, partOf(version.key, contentOf(*version.version)))
			if isNew {
				m.conflict(offer.source, v1.CatalogueConflict{
					Addon: name, Version: version.version.Version, WonBy: wonBy, Reason: v1.ReasonOwnedByOther,
				})
			}
			return isNew
		})
		m.offers[name][i].addon = &left
	}
	m.offers[name] = slices.DeleteFunc(m.offers[name], func(offer offer) bool { return len(offer.addon.versions) == 0 })
}
