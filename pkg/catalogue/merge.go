package catalogue

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// MergedLimit is the maximum size of a merged object, as JSON, in bytes. etcd accepts 1.5 MiB.
const MergedLimit = 1 << 20

// MergedAddon is one add-on, merged from all catalogues: the content of one merged object.
type MergedAddon struct {
	// Spec has only this add-on, versions newest first.
	Spec v1.AddonCatalogueSpec
	// Origins by version, as spelt in Spec.
	Origins map[string]Origin
	Digest  string
	// Contributors are the catalogues whose offers of the add-on were considered.
	Contributors []types.UID

	originsJSON string
}

// OriginsJSON is the value of annotation v1.AnnotationVersions.
func (m *MergedAddon) OriginsJSON() string {
	if m.originsJSON != "" {
		return m.originsJSON
	}
	encoded, err := json.Marshal(m.Origins)
	if err != nil { // a map of strings always encodes
		return "{}"
	}
	return string(encoded)
}

// TooLargeError reports that a merged object would be too large. The seeds keep the previous one.
type TooLargeError struct {
	Addon string
	// Author is the catalogue whose share of owned add-ons is used up; empty: the error has another cause.
	Author string
	// What is the counted unit, such as "versions" or "bytes"; Have exceeds Limit.
	What        string
	Have, Limit int
	// Contributors are the catalogues that have the add-on.
	Contributors []types.UID
}

// IsOfNames reports that there is no space to record the add-on's owners: no version of it was merged.
func (e *TooLargeError) IsOfNames() bool { return e.What == ownersCounted }

func (e *TooLargeError) Error() string {
	if e.Author != "" {
		return fmt.Sprintf("add-on %q is not merged: the names of the add-ons of catalogue %q would take %d bytes, and a catalogue may use a "+
			"sixteenth of the bytes that the other catalogues leave unused, out of %d: remove add-ons from the catalogue",
			e.Addon, e.Author, e.Have, e.Limit)
	}
	if e.IsOfNames() {
		return fmt.Sprintf("add-on %q is not merged: the names of all add-ons of Custom catalogues and of their owners would take %d bytes, "+
			"more than %d: remove add-ons from them", e.Addon, e.Have, e.Limit)
	}
	return fmt.Sprintf("merged add-on %q has %d %s, more than %d: remove old versions from its catalogues",
		e.Addon, e.Have, e.What, e.Limit)
}

// Merged is the result of Merge.
type Merged struct {
	Addons map[string]*MergedAddon
	// Refused add-ons by name; the seeds keep their previous objects.
	Refused map[string]*TooLargeError
	// Beyond are the Custom catalogues for which there is no space. They keep the add-ons that they own, without
	// versions.
	Beyond map[types.UID]*NoSpaceError
	// Conflicts by catalogue, sorted by add-on and version.
	Conflicts map[types.UID][]v1.CatalogueConflict
	// Owners are the new owners of add-ons of Custom catalogues, Former are the parts that previous owners keep. Room
	// are the weights of the catalogues that are not Beyond.
	Owners   Owners
	Previous Previous
	Space    Space
}

// Merge merges catalogues into one. The order of the sources does not matter. If they are merged again with the
// returned owners and room, the result is the same.
func Merge(sources []*Source, claims Claims) Merged {
	left, has := beyond(sources, claims.Had)
	m := merger{
		Merged: Merged{
			Addons: map[string]*MergedAddon{}, Refused: map[string]*TooLargeError{}, Beyond: left, Space: has,
			Conflicts: map[types.UID][]v1.CatalogueConflict{}, Owners: Owners{}, Previous: Previous{},
		},
		claims: claims, offers: map[string][]offer{}, reserved: map[string]*Source{}, brought: map[string][]string{},
		previous: len(claims.Previous.Encode()),
	}
	ranked := slices.Clone(sources)
	slices.SortFunc(ranked, rank)
	for _, source := range ranked {
		m.collect(source)
	}
	m.own()
	for _, name := range slices.Sorted(maps.Keys(m.offers)) {
		m.unite(name)
	}
	for _, conflicts := range m.Conflicts {
		slices.SortFunc(conflicts, func(a, b v1.CatalogueConflict) int {
			return cmp.Or(cmp.Compare(a.Addon, b.Addon), Compare(a.Version, b.Version), cmp.Compare(a.WonBy, b.WonBy))
		})
	}
	return m.Merged
}

// rank orders sources: Core before Custom, then by higher priority, age and name. Among Custom ones it orders only
// those that are new to an add-on; afterwards the order of its owners applies.
func rank(a, b *Source) int {
	return cmp.Or(
		-cmp.Compare(coreFirst(a), coreFirst(b)),
		-cmp.Compare(a.Priority, b.Priority),
		a.Created.Compare(b.Created),
		cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.UID, b.UID),
	)
}

func coreFirst(source *Source) int {
	if source.Type == v1.CatalogueCore {
		return 1
	}
	return 0
}

type merger struct {
	Merged
	claims Claims
	// offers by add-on, by precedence.
	offers map[string][]offer
	// reserved is the first Core catalogue that uses a name.
	reserved map[string]*Source
	// brought are the authors of Custom catalogues that offer an add-on, by rank, also if its name is reserved.
	brought map[string][]string
	// previous is the size of the previous owners, in bytes.
	previous int
}

type offer struct {
	source *Source
	addon  *sourceAddon
}

type pick struct {
	offer
	version *sourceVersion
}

// collect adds a source's add-ons. Core sources come first, so all reserved names are known.
func (m *merger) collect(source *Source) {
	isBeyond := m.Beyond[source.UID] != nil
	for i := range source.addons {
		addon := &source.addons[i]
		name := string(addon.addon.Name)
		if isBeyond && !slices.Contains(m.claims.Owners[name], source.author()) {
			continue
		}
		if source.Type != v1.CatalogueCore && !slices.Contains(m.brought[name], source.author()) {
			m.brought[name] = append(m.brought[name], source.author())
		}
		if core := m.reserved[name]; core != nil && source.Type != v1.CatalogueCore {
			m.conflict(source, v1.CatalogueConflict{Addon: name, WonBy: core.Name, Reason: v1.ReasonCoreReserved})
			continue
		}
		if source.Type == v1.CatalogueCore && m.reserved[name] == nil {
			m.reserved[name] = source
		}
		if isBeyond || len(addon.versions) == 0 {
			continue
		}
		m.offers[name] = append(m.offers[name], offer{source, addon})
	}
}

func (m *merger) conflict(source *Source, conflict v1.CatalogueConflict) {
	m.Conflicts[source.UID] = append(m.Conflicts[source.UID], conflict)
}

func (m *merger) unite(name string) {
	offers := m.offers[name]
	picks := m.pick(name, offers)
	slices.SortStableFunc(picks, func(a, b pick) int {
		return compare(b.version.version.Version, b.version.semver, a.version.version.Version, a.version.semver)
	})
	about := describe(name, offers, picks)
	merged := &MergedAddon{
		Spec:    v1.AddonCatalogueSpec{Type: offers[0].source.Type, SupportedBy: about.SupportedBy, Addons: []v1.Addon{about}},
		Origins: map[string]Origin{},
	}
	for _, offer := range offers {
		merged.Contributors = append(merged.Contributors, offer.source.UID)
	}
	size := 0
	for _, pick := range picks {
		size += pick.version.size
		merged.Spec.Addons[0].Versions = append(merged.Spec.Addons[0].Versions, *pick.version.version)
		merged.Origins[pick.version.version.Version] = Origin{
			Digest: pick.version.digest, Catalogue: pick.source.Name, Git: pick.source.git,
		}
	}
	merged.originsJSON = merged.OriginsJSON()
	if refused := merged.tooLarge(name, size); refused != nil {
		m.Refused[name] = refused
		return
	}
	merged.Digest = merged.digest()
	m.Addons[name] = merged
}

func (m *merger) pick(name string, offers []offer) []pick {
	var picks []pick
	winners := map[string]pick{}
	reported := map[string]bool{}
	for _, offer := range offers {
		for i := range offer.addon.versions {
			version := &offer.addon.versions[i]
			winner, taken := winners[version.key]
			if !taken {
				winners[version.key] = pick{offer, version}
				picks = append(picks, pick{offer, version})
				continue
			}
			m.duplicate(name, version.version.Version, offer.source, winner.source)
			if !reported[version.key] {
				m.duplicate(name, winner.version.version.Version, winner.source, winner.source)
			}
			reported[version.key] = true
		}
	}
	return picks
}

func (m *merger) duplicate(addon, version string, on, wonBy *Source) {
	m.conflict(on, v1.CatalogueConflict{Addon: addon, Version: version, WonBy: wonBy.Name, Reason: v1.ReasonDuplicate})
}

// describe uses the description and links of the highest version, which is the first pick, and slot and namespace by
// precedence.
func describe(name string, offers []offer, picks []pick) v1.Addon {
	described := picks[0].addon.addon
	namespace, create := namespaceOf(offers)
	return v1.Addon{
		Name: v1.AddonName(name), Slot: slotOf(offers), TargetNamespace: namespace, CreateNamespace: create,
		DisplayName: described.DisplayName, Description: described.Description, DocumentationURL: described.DocumentationURL,
		SupportedBy: described.SupportedBy,
	}
}

// namespaceOf is the namespace of the first catalogue, by precedence, that names one.
func namespaceOf(offers []offer) (namespace string, create bool) {
	for _, offer := range offers {
		if addon := offer.addon.addon; addon.TargetNamespace != "" {
			return addon.TargetNamespace, addon.CreateNamespace
		}
	}
	return "", false
}

// slotOf is the slot of the first catalogue, by precedence, that names one. So a new version in a catalogue of lower
// precedence moves no add-on to another slot, and one without a slot removes none.
func slotOf(offers []offer) v1.Slot {
	for _, offer := range offers {
		if slot := offer.addon.addon.Slot; slot != "" {
			return slot
		}
	}
	return ""
}

// tooLarge checks the limits. Size is that of all versions as JSON.
func (m *MergedAddon) tooLarge(name string, size int) *TooLargeError {
	if have := len(m.Spec.Addons[0].Versions); have > VersionLimit {
		return &TooLargeError{Addon: name, What: "versions", Have: have, Limit: VersionLimit, Contributors: m.Contributors}
	}
	if have := size + len(m.OriginsJSON()); have > MergedLimit {
		return &TooLargeError{Addon: name, What: "bytes", Have: have, Limit: MergedLimit, Contributors: m.Contributors}
	}
	return nil
}

// digest covers versions by their own digests, to encode them only once. It does not cover Origin.Git, which seeds of
// an earlier release would not measure.
func (m *MergedAddon) digest() string {
	origins := make(map[string]Origin, len(m.Origins))
	for version, origin := range m.Origins {
		origin.Git = ""
		origins[version] = origin
	}
	about := m.Spec.Addons[0]
	versions := make([]string, 0, len(about.Versions))
	for _, version := range about.Versions {
		versions = append(versions, version.Version)
	}
	about.Versions = nil
	encoded, err := json.Marshal([]any{m.Spec.Type, about, versions, origins})
	if err != nil {
		return ""
	}
	return digestOf(encoded)
}

// Change is a version whose content changed under the same name.
type Change struct {
	Addon, Version string
	// Catalogue is the present one of the version.
	Catalogue string
	// About says that only constraints, deprecation or onClusterDeletion changed, not the content.
	About bool
}

// Changes are versions of one name with different content in two merges, by add-on, newest first.
func Changes(before, after Merged) []Change {
	var changes []Change
	for name, addon := range after.Addons {
		was := before.Addons[name]
		if was == nil || was.Digest == addon.Digest {
			continue
		}
		digests := digestsOf(was)
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

// versionsOf are those of a merged add-on by key; none for nil.
func versionsOf(addon *MergedAddon) map[string]v1.AddonVersion {
	versions := map[string]v1.AddonVersion{}
	if addon != nil {
		for _, version := range addon.Spec.Addons[0].Versions {
			versions[Key(version.Version)] = version
		}
	}
	return versions
}

// contentOf is the digest of the content of a version, which addonRef.digest names. Users compare it with that of a
// later release, so its fields and their encoding must not change. It does not cover onClusterDeletion, which changes
// no installed object.
func contentOf(version v1.AddonVersion) string {
	template := version.Template
	if template != nil && template.OnClusterDeletion != "" {
		installed := *template
		installed.OnClusterDeletion = ""
		template = &installed
	}
	digest, _, _ := measure(&v1.AddonVersion{ // a version that can't be encoded is in no merged catalogue
		Template: template, Source: version.Source, Values: version.Values, ValuesTemplate: version.ValuesTemplate,
		ValuesFrom: version.ValuesFrom,
	})
	return digest
}
