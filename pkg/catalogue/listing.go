package catalogue

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
)

// Listing is the complete decision of Available, with origins. It has no forms (see VersionDetail), and descriptions
// only on request, since it may have thousands of versions. Its JSON is an answer of the query endpoint:
// docs/spec/query.md lists every field.
type Listing struct {
	// KKPVersion and K8sVersion are canonical, as in PlatformVersion.
	KKPVersion string        `json:"kkpVersion"`
	K8sVersion string        `json:"k8sVersion"`
	Addons     []ListedAddon `json:"addons"`
}

// ListedAddon is one add-on of a Listing.
type ListedAddon struct {
	Name        string `json:"name"`
	DisplayName string `json:"displayName,omitempty"`
	// SupportedBy names who answers for the add-on.
	SupportedBy v1.SupportedBy `json:"supportedBy,omitempty"`
	// Description and DocumentationURL are set on request only.
	Description      string `json:"description,omitempty"`
	DocumentationURL string `json:"documentationURL,omitempty"`
	// Versions that fit, newest first; never nil.
	Versions []ListedVersion `json:"versions"`
	// Excluded versions, newest first; set on request only.
	Excluded []ListedExclusion `json:"excluded,omitempty"`
}

// ListedVersion is a version that fits.
type ListedVersion struct {
	VersionOrigin
	// Deprecated is the reason why the version should no longer be used; usually empty.
	Deprecated string `json:"deprecated,omitempty"`
}

// ListedExclusion is a version that does not fit.
type ListedExclusion struct {
	VersionOrigin
	// Reason is a reason such as v1.ExcludedK8sVersion, Message the version's requirement.
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// VersionOrigin names a version and its catalogue, if the merged object has it.
type VersionOrigin struct {
	Version   string `json:"version"`
	Catalogue string `json:"catalogue,omitempty"`
}

func (v entryVersion) named() VersionOrigin {
	return VersionOrigin{Version: v.version.Version, Catalogue: v.stored.Catalogue}
}

// Lister decides for one platform, one add-on at a time. It is not safe for concurrent use.
type Lister struct {
	check   *platformCheck
	options ListOptions
}

// ListOptions are optional parts of a listing.
type ListOptions struct {
	// Explain adds excluded versions with reasons.
	Explain bool
	// Describe adds each add-on's description and link.
	Describe bool
}

// NewLister creates a Lister.
func NewLister(platform Platform, options ListOptions) *Lister {
	return &Lister{check: newPlatformCheck(platform), options: options}
}

// List lists the versions of one add-on. False: there is nothing to list.
func (l *Lister) List(entry *Entry) (ListedAddon, bool) {
	listed := ListedAddon{
		Name: string(entry.Addon.Name), DisplayName: entry.Addon.DisplayName, SupportedBy: entry.Addon.SupportedBy,
		Versions: []ListedVersion{},
	}
	if l.options.Describe {
		listed.Description, listed.DocumentationURL = entry.Addon.Description, entry.Addon.DocumentationURL
	}
	for _, version := range entry.versions {
		reason, message := entry.excludes(&version, l.check)
		switch {
		case reason == "":
			listed.Versions = append(listed.Versions, ListedVersion{version.named(), version.version.Deprecated})
		case l.options.Explain:
			listed.Excluded = append(listed.Excluded, ListedExclusion{version.named(), reason, message})
		}
	}
	return listed, len(listed.Versions)+len(listed.Excluded) > 0
}

// CanonicalPlatformVersion is a platform's version without irrelevant parts (see PlatformVersion), or the text itself
// if it is no version. Decisions are the same for both.
func CanonicalPlatformVersion(text string) string {
	if parsed, ok := PlatformVersion(text); ok {
		return parsed.String()
	}
	return text
}

// StampedKKPVersion is the KKP version of most merged objects, "" without entries. The versions differ while a new
// one is distributed, and if an object can no longer be written.
func StampedKKPVersion(entries []*Entry) string {
	counts := map[string]int{}
	for _, entry := range entries {
		counts[entry.KKPVersion]++
	}
	versions := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(b, a))
	})
	if len(versions) == 0 {
		return ""
	}
	return versions[0]
}

// VersionDetail describes a version before its installation. It has neither source nor values.
type VersionDetail struct {
	Addon            string           `json:"addon"`
	DisplayName      string           `json:"displayName,omitempty"`
	Description      string           `json:"description,omitempty"`
	DocumentationURL string           `json:"documentationURL,omitempty"`
	SupportedBy      v1.SupportedBy   `json:"supportedBy,omitempty"`
	Type             v1.CatalogueType `json:"type"`
	VersionOrigin
	// Digest covers the version's content; it changes when an admin changes the version.
	Digest      string          `json:"digest,omitempty"`
	Deprecated  string          `json:"deprecated,omitempty"`
	Method      v1.Method       `json:"method,omitempty"`
	Constraints *v1.Constraints `json:"constraints,omitempty"`
	// FormSpec is never nil.
	FormSpec []v1.FormField `json:"formSpec"`
}

// Detail describes a version, by any spelling of its name; false if there is none. The result
// shares data with the entry: don't change it.
func (e *Entry) Detail(version string) (VersionDetail, bool) {
	found := e.find(version)
	if found == nil {
		return VersionDetail{}, false
	}
	detail := VersionDetail{
		Addon: string(e.Addon.Name), DisplayName: e.Addon.DisplayName,
		Description: e.Addon.Description, DocumentationURL: e.Addon.DocumentationURL, SupportedBy: e.Addon.SupportedBy,
		Type:          cmp.Or(e.Type, v1.CatalogueCustom),
		VersionOrigin: found.named(), Digest: found.stored.Digest, Deprecated: found.version.Deprecated,
		Constraints: found.version.Constraints, FormSpec: []v1.FormField{},
	}
	if template := found.version.Template; template != nil {
		detail.Method = template.Method
		if template.FormSpec != nil {
			detail.FormSpec = template.FormSpec
		}
	}
	return detail, true
}

// excludes returns why a version is not offered on a platform; "" if it is.
func (e *Entry) excludes(version *entryVersion, check *platformCheck) (reason, message string) {
	switch {
	case e.Type == v1.CatalogueCore:
		return v1.ExcludedCore, coreMessage
	case version.version.Draft:
		return v1.ExcludedDraft, "it is a draft: name it exactly to try it"
	}
	return check.fits(version.kkp, version.k8s)
}

const coreMessage = "core add-ons are installed by the platform and not offered to users"

// excludedLimit is the maximum number of excluded versions in an available catalogue; it counts all.
const excludedLimit = 200

// Availability are the versions that a platform is offered.
type Availability struct {
	// Addons have only names, versions and short texts: sorted by name, versions newest first.
	Addons   []v1.Addon
	Versions int32
	// Excluded lists at most 200 excluded versions, sorted by add-on and version.
	Excluded []v1.ExcludedVersion
	// ExcludedCount is the number of all excluded versions, CoreCount that of the ones that belong to core add-ons.
	ExcludedCount, CoreCount int32
	// LeftOut is the number of fitting versions that are not listed for lack of space: those of the largest
	// catalogues.
	LeftOut int
	Digest  string
	// texts is the size of display names, descriptions and supportedBy, in bytes.
	texts int
}

const (
	// describedAtMost is the maximum length of an add-on's description in an available catalogue, in bytes.
	describedAtMost = 120
	// textsAtMost is the maximum size of display names, descriptions and supportedBy of one, in bytes; each cluster of a
	// seed has them.
	textsAtMost = 32 << 10
)

// describe adds a short description of an add-on while there is space; the query endpoint has the complete one.
func (a *Availability) describe(short *v1.Addon, whole *v1.Addon) {
	name, description := text.Line(whole.DisplayName), text.CutWords(text.Line(whole.Description), describedAtMost)
	if size := a.texts + len(name) + len(description) + len(whole.SupportedBy); size <= textsAtMost {
		short.DisplayName, short.Description, short.SupportedBy, a.texts = name, description, whole.SupportedBy, size
	}
}

// Available computes the versions that a platform is offered. Entries of NewEntry give no error.
func Available(entries []*Entry, platform Platform) (Availability, error) {
	sorted := slices.Clone(entries)
	slices.SortFunc(sorted, func(a, b *Entry) int { return cmp.Compare(a.Addon.Name, b.Addon.Name) })
	var found Availability
	check := newPlatformCheck(platform)
	for _, entry := range sorted {
		found.add(entry, check)
	}
	found.bound(sorted)
	encoded, err := json.Marshal(found)
	if err != nil { // texts and numbers always encode
		return Availability{}, err
	}
	found.Digest = digestOf(encoded)
	return found, nil
}

func (a *Availability) add(entry *Entry, check *platformCheck) {
	compact := v1.Addon{Name: entry.Addon.Name}
	for _, version := range entry.versions {
		reason, message := entry.excludes(&version, check)
		if reason == "" {
			compact.Versions = append(compact.Versions, v1.AddonVersion{Version: version.version.Version})
			continue
		}
		a.exclude(v1.ExcludedVersion{
			Addon: string(entry.Addon.Name), Version: version.version.Version, Reason: reason, Message: message,
		})
	}
	if len(compact.Versions) > 0 {
		a.describe(&compact, &entry.Addon)
		a.Addons = append(a.Addons, compact)
		a.Versions += int32(len(compact.Versions)) // at most 128 by the schema
	}
}

func (a *Availability) exclude(version v1.ExcludedVersion) {
	a.ExcludedCount++
	if version.Reason == v1.ExcludedCore {
		a.CoreCount++
	}
	if len(a.Excluded) < excludedLimit {
		a.Excluded = append(a.Excluded, version)
	}
}
