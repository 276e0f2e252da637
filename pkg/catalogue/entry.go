package catalogue

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/Masterminds/semver/v3"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Entry is one parsed add-on of a merged catalogue. It is read-only and safe for concurrent use.
type Entry struct {
	// Addon has all versions, newest first.
	Addon v1.Addon
	// Type is Core if a Core catalogue has the add-on.
	Type v1.CatalogueType
	// KKPVersion is the platform's, as the distributor recorded it in the merged object.
	KKPVersion string
	// Digest covers the merged object.
	Digest string

	versions []entryVersion
	byKey    map[string]int
	// left are the keys of the versions that core installations have to leave.
	left map[string]bool
}

type entryVersion struct {
	version  *v1.AddonVersion
	stored   Origin
	semver   *semver.Version
	kkp, k8s *constraintRange
	// content is computed on first use: most versions are never chosen.
	content func() string
}

// origin is complete, with Content.
func (v *entryVersion) origin() Origin {
	origin := v.stored
	origin.Content = v.content()
	return origin
}

// Origin is the catalogue that a version of a merged add-on comes from. Digest covers the whole version, Content the
// fields that it installs: its template, source, values and valuesTemplate (addonRef.digest). Only entries have
// Content. Git is the catalogue in git that Catalogue was generated from, if it was.
type Origin struct {
	Digest    string `json:"digest"`
	Content   string `json:"-"`
	Catalogue string `json:"catalogue"`
	Git       string `json:"git,omitempty"`
}

// MalformedError reports that an object is no merged catalogue.
type MalformedError struct {
	Name, Detail string
}

func (e *MalformedError) Error() string {
	return fmt.Sprintf("merged AddonCatalogue %q: %s", e.Name, e.Detail)
}

// NewEntry reads a merged AddonCatalogue, which must not change afterwards. Errors:
// *MalformedError.
func NewEntry(merged *v1.AddonCatalogue) (*Entry, error) {
	if len(merged.Spec.Addons) != 1 {
		return nil, &MalformedError{merged.Name, fmt.Sprintf("it has %d add-ons, but must have exactly one", len(merged.Spec.Addons))}
	}
	origins, err := ReadOrigins(merged)
	if err != nil {
		return nil, err
	}
	left, err := readLeft(merged)
	if err != nil {
		return nil, err
	}
	entry := &Entry{
		left:       left,
		Addon:      merged.Spec.Addons[0],
		Type:       merged.Spec.Type,
		KKPVersion: merged.Annotations[v1.AnnotationKKPVersion],
		Digest:     merged.Annotations[v1.AnnotationDigest],
	}
	entry.readVersions(origins)
	return entry, nil
}

// EntryOf is the entry of an add-on that was not merged, which must not change afterwards: its versions have no origins.
func EntryOf(addon v1.Addon) *Entry {
	entry := &Entry{Addon: addon}
	entry.readVersions(nil)
	return entry
}

// ReadOrigins returns the origin of each version of a merged catalogue. Errors: *MalformedError.
func ReadOrigins(merged *v1.AddonCatalogue) (map[string]Origin, error) {
	origins := map[string]Origin{}
	text, ok := merged.Annotations[v1.AnnotationVersions]
	if !ok {
		return origins, nil
	}
	if err := json.Unmarshal([]byte(text), &origins); err != nil {
		return nil, &MalformedError{merged.Name, "annotation " + v1.AnnotationVersions + " is not a JSON object of origins"}
	}
	return origins, nil
}

func (e *Entry) readVersions(origins map[string]Origin) {
	e.versions = make([]entryVersion, 0, len(e.Addon.Versions))
	for i := range e.Addon.Versions {
		version := &e.Addon.Versions[i]
		kkp, k8s := readConstraints(version)
		e.versions = append(e.versions, entryVersion{
			version: version, stored: origins[version.Version], semver: addonVersion(version.Version), kkp: kkp, k8s: k8s,
			content: sync.OnceValue(func() string { return contentOf(*version) }),
		})
	}
	slices.SortStableFunc(e.versions, func(a, b entryVersion) int { return b.compare(a) })
	e.byKey = make(map[string]int, len(e.versions))
	for i, version := range e.versions {
		e.byKey[key(version.version.Version, version.semver)] = i
	}
}

func (v entryVersion) compare(other entryVersion) int {
	return compare(v.version.Version, v.semver, other.version.Version, other.semver)
}

// find returns a version by any spelling of its name, or nil.
func (e *Entry) find(version string) *entryVersion {
	i, ok := e.byKey[Key(version)]
	if !ok {
		return nil
	}
	return &e.versions[i]
}

// Version returns a version by any spelling of its name, with its origin, or nil.
func (e *Entry) Version(version string) (*v1.AddonVersion, Origin) {
	found := e.find(version)
	if found == nil {
		return nil, Origin{}
	}
	return found.version, found.origin()
}

// Left reports whether core installations have to leave a version, in any spelling.
func (e *Entry) Left(version string) bool { return len(e.left) > 0 && e.left[Key(version)] }

// TemplateOf is the template of an add-on's version; for a range, or an empty version, that of the newest. Nil: it
// has none.
func TemplateOf(addon *v1.Addon, version string) *v1.Template {
	for i := range addon.Versions {
		if Key(addon.Versions[i].Version) == Key(version) {
			return addon.Versions[i].Template
		}
	}
	if len(addon.Versions) == 0 {
		return nil
	}
	return addon.Versions[0].Template
}
