package catalogue

import (
	"cmp"
	"maps"
	"slices"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Listing is what a platform is offered: what Available decides, with origins and nothing cut off. Forms are in VersionDetail,
// and descriptions where nobody asks for them here: a listing may have thousands of versions, and costs what it weighs.
// Its JSON is an answer of the query endpoint; docs/spec/query.md has every field.
type Listing struct {
	// KKPVersion and K8sVersion are what the constraints were compared with, as PlatformVersion reads them.
	KKPVersion string `json:"kkpVersion"`
	K8sVersion string `json:"k8sVersion"`
	// Addons are sorted by name.
	Addons []ListedAddon `json:"addons"`
}

// ListedAddon is one add-on of a Listing.
type ListedAddon struct {
	Name        string `json:"name"`
	DisplayName string `json:"displayName,omitempty"`
	// Description and DocumentationURL are there where somebody asked for them.
	Description      string `json:"description,omitempty"`
	DocumentationURL string `json:"documentationURL,omitempty"`
	// Versions fit, newest first; never nil.
	Versions []ListedVersion `json:"versions"`
	// Excluded don't fit, newest first; nil where nobody asked for an explanation.
	Excluded []ListedExclusion `json:"excluded,omitempty"`
}

// ListedVersion is a version that fits.
type ListedVersion struct {
	VersionOrigin
	// Deprecated is a sentence on why not to use the version any more; empty for most.
	Deprecated string `json:"deprecated,omitempty"`
}

// ListedExclusion is a version that does not fit.
type ListedExclusion struct {
	VersionOrigin
	// Reason is an exclusion reason such as v1.ExcludedK8sVersion, Message what would be needed.
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// VersionOrigin names a version and the catalogue that it comes from, as far as the merged object says it.
type VersionOrigin struct {
	Version   string `json:"version"`
	Catalogue string `json:"catalogue,omitempty"`
}

func (v entryVersion) named() VersionOrigin {
	return VersionOrigin{Version: v.version.Version, Catalogue: v.origin.Catalogue}
}

// Lister decides for one platform, one add-on at a time, so that whoever keeps answers decides anew only what changed. It
// is not fit for use by several goroutines.
type Lister struct {
	check   *platformCheck
	options ListOptions
}

// ListOptions are what a listing tells beyond names and versions.
type ListOptions struct {
	// Explain gives reasons for what is left out.
	Explain bool
	// Describe gives each add-on's description and link.
	Describe bool
}

// NewLister makes a Lister.
func NewLister(platform Platform, options ListOptions) *Lister {
	return &Lister{check: newPlatformCheck(platform), options: options}
}

// List decides on one add-on. False: there is nothing to tell, since no version fits and nobody asked why.
func (l *Lister) List(entry *Entry) (ListedAddon, bool) {
	listed := ListedAddon{Name: string(entry.Addon.Name), DisplayName: entry.Addon.DisplayName, Versions: []ListedVersion{}}
	if l.options.Describe {
		listed.Description, listed.DocumentationURL = entry.Addon.Description, entry.Addon.DocumentationURL
	}
	for _, version := range entry.versions {
		reason, message := v1.ExcludedCore, coreMessage
		if entry.Type != v1.CatalogueCore {
			reason, message = l.check.fits(version.kkp, version.k8s)
		}
		switch {
		case reason == "":
			listed.Versions = append(listed.Versions, ListedVersion{version.named(), version.version.Deprecated})
		case l.options.Explain:
			listed.Excluded = append(listed.Excluded, ListedExclusion{version.named(), reason, message})
		}
	}
	return listed, len(listed.Versions)+len(listed.Excluded) > 0
}

// CanonicalPlatformVersion is a platform's version without what does not count (see PlatformVersion); a text that is no
// version stays as it is. Decisions are the same for both.
func CanonicalPlatformVersion(text string) string {
	if parsed, ok := PlatformVersion(text); ok {
		return parsed.String()
	}
	return text
}

// StampedKKPVersion is the KKP version that most merged objects are stamped with: while a new one is being distributed they
// differ for a moment, and one that can't be written any more keeps its old stamp. Empty: there are no entries.
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

// VersionDetail is what a user interface shows of one version before it is installed. Neither source nor values are in it.
type VersionDetail struct {
	Addon            string           `json:"addon"`
	DisplayName      string           `json:"displayName,omitempty"`
	Description      string           `json:"description,omitempty"`
	DocumentationURL string           `json:"documentationURL,omitempty"`
	Type             v1.CatalogueType `json:"type"`
	VersionOrigin
	// Digest covers the version's content; it changes when an admin changes what the version is.
	Digest      string          `json:"digest,omitempty"`
	Deprecated  string          `json:"deprecated,omitempty"`
	Method      v1.Method       `json:"method,omitempty"`
	Constraints *v1.Constraints `json:"constraints,omitempty"`
	// FormSpec are the fields that a user fills in; never nil.
	FormSpec []v1.FormField `json:"formSpec"`
}

// Detail describes one version by any spelling of its name; false where the add-on has none such. The result shares parts
// with the entry and must not be changed.
func (e *Entry) Detail(version string) (VersionDetail, bool) {
	found := e.find(version)
	if found == nil {
		return VersionDetail{}, false
	}
	detail := VersionDetail{
		Addon: string(e.Addon.Name), DisplayName: e.Addon.DisplayName,
		Description: e.Addon.Description, DocumentationURL: e.Addon.DocumentationURL, Type: cmp.Or(e.Type, v1.CatalogueCustom),
		VersionOrigin: found.named(), Digest: found.origin.Digest, Deprecated: found.version.Deprecated,
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
