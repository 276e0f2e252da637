package catalogue

import (
	"slices"

	"github.com/Masterminds/semver/v3"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
)

// SelectOptions are an installation's rights.
type SelectOptions struct {
	// AllowDowngrade allows a lower version than the installed one (annotation allow-downgrade).
	AllowDowngrade bool
	// Core is spec.coreAddon; other installations get nothing from Core catalogues.
	Core bool
	// BySet says that an AddonSet of type Custom asks: its item, and no annotation, allows a downgrade.
	BySet bool
}

// Selection is the result of Select.
type Selection struct {
	// Version is the chosen version, nil with a refusal. It belongs to the entry: don't edit it.
	Version *v1.AddonVersion
	Origin  Origin
	// AvailableUpdate is the newest fitting version above the chosen one, or above the installed one with a refusal;
	// may be empty.
	AvailableUpdate string
}

// Select chooses a version for an installation. Wanted is addonRef.version: an exact version, a range, or empty;
// installed is the installed version, or empty:
//
//   - an exact version is used as named, compared canonically, even if it is deprecated or a draft;
//   - a range or an empty wanted selects the highest semantic version that fits and is neither
//     deprecated nor a draft; pre-releases count only where the range names one, as with Helm;
//   - the installed version may be chosen even if it is one of these, a lower one only if allowed;
//   - of those that a range may select, the platform's next versions prefer one that fits them too;
//   - a version that core installations leave is never chosen, and may be replaced by a lower one.
func Select(entry *Entry, wanted, installed string, platform Platform, options SelectOptions) (Selection, Refusal) {
	s := selector{entry: entry, wanted: wanted, installed: installed, options: options, platform: newPlatformCheck(platform)}
	s.installedSemver = addonVersion(installed)
	s.installedKey = key(installed, s.installedSemver)
	chosen, refusal := s.choose()
	if refusal != nil {
		return Selection{AvailableUpdate: s.updateAbove(s.installedSemver)}, refusal
	}
	return Selection{
		Version: chosen.version, Origin: chosen.origin(), AvailableUpdate: s.updateAbove(chosen.semver),
	}, nil
}

type selector struct {
	entry             *Entry
	wanted, installed string
	installedKey      string
	installedSemver   *semver.Version
	options           SelectOptions
	platform          *platformCheck
}

func (s *selector) choose() (*entryVersion, Refusal) {
	if s.entry.Type == v1.CatalogueCore && !s.options.Core {
		return nil, &IncompatibleError{
			Addon: string(s.entry.Addon.Name), Version: s.wanted, Excluded: v1.ExcludedCore, Message: coreMessage,
		}
	}
	if s.wanted != "" && !IsRange(s.wanted) {
		return s.exact()
	}
	return s.byRange()
}

func (s *selector) exact() (*entryVersion, Refusal) {
	found := s.entry.find(s.wanted)
	if found == nil || s.isLeft(s.wanted) {
		if s.installed != "" && s.installedKey == Key(s.wanted) {
			return nil, s.withdrawn()
		}
		return nil, s.unknown(s.known())
	}
	if reason, message := s.platform.fits(found.kkp, found.k8s); reason != "" {
		return nil, s.incompatible(found, reason, message)
	}
	if s.isDown(found) {
		return nil, s.downgrade(found)
	}
	return found, nil
}

func (s *selector) byRange() (*entryVersion, Refusal) {
	within, refusal := s.within()
	if refusal != nil {
		return nil, refusal
	}
	var found candidates
	for i := range s.entry.versions {
		version := &s.entry.versions[i]
		if !within(version) {
			continue
		}
		if s.consider(version, &found); found.chosen != nil && found.ahead == len(s.platform.next) {
			return found.chosen, nil
		}
	}
	if found.chosen != nil {
		return found.chosen, nil
	}
	return nil, s.refuse(found)
}

type candidates struct {
	// chosen is the highest of those that fit most of the next versions, counted in order.
	chosen *entryVersion
	ahead  int
	// lower is the highest version that fits but is a downgrade.
	lower *entryVersion
	// unfit is the highest version that does not fit, with the reason.
	unfit           *entryVersion
	reason, message string
	// deprecated and draft versions are among those in the range.
	deprecated, draft bool
}

// consider adds one version in the range; versions come highest first.
func (s *selector) consider(version *entryVersion, found *candidates) {
	reason, message := s.platform.fits(version.kkp, version.k8s)
	switch {
	case s.isLeft(version.version.Version):
	case version.version.Draft && !s.isInstalled(version):
		found.draft = true
	case reason != "" && found.unfit == nil:
		found.unfit, found.reason, found.message = version, reason, message
	case reason != "":
	case version.version.Deprecated != "" && !s.isInstalled(version):
		found.deprecated = true
	case !s.isDown(version):
		if ahead := s.platform.ahead(version.k8s); found.chosen == nil || ahead > found.ahead {
			found.chosen, found.ahead = version, ahead
		}
	case found.lower == nil:
		found.lower = version
	}
}

func (s *selector) refuse(found candidates) Refusal {
	installed := s.entry.find(s.installed)
	if s.installed != "" && (installed == nil || s.isLeft(s.installed)) && s.inRange(s.installedSemver) {
		return s.withdrawn()
	} else if installed != nil && s.inRange(installed.semver) {
		if reason, message := s.platform.fits(installed.kkp, installed.k8s); reason != "" {
			return s.incompatible(installed, reason, message)
		}
	}
	switch {
	case found.lower != nil:
		return s.downgrade(found.lower)
	case found.unfit != nil:
		return s.incompatible(found.unfit, found.reason, found.message)
	case found.deprecated:
		return s.unknown("all matching versions are deprecated: name one exactly to install it anyway")
	case found.draft:
		return s.unknown("all matching versions are drafts: name one exactly to try it")
	case slices.ContainsFunc(s.entry.versions, isPreRelease):
		return s.unknown(s.known() + "; name a pre-release exactly to install it")
	}
	return s.unknown(s.known())
}

func isPreRelease(version entryVersion) bool {
	return version.semver != nil && version.semver.Prerelease() != ""
}

// within returns the test for candidates. An empty wanted includes the installed version.
func (s *selector) within() (func(*entryVersion) bool, Refusal) {
	if s.wanted == "" {
		return func(v *entryVersion) bool {
			return v.semver != nil && (v.semver.Prerelease() == "" || s.isInstalled(v))
		}, nil
	}
	wanted, err := ParseRange(s.wanted)
	if err != nil {
		return nil, s.unknown(err.Error())
	}
	return func(v *entryVersion) bool { return v.semver != nil && wanted.Contains(v.semver, false) }, nil
}

func (s *selector) inRange(version *semver.Version) bool {
	if version == nil || s.wanted == "" {
		return version != nil
	}
	wanted, err := ParseRange(s.wanted)
	return err == nil && wanted.Contains(version, false)
}

func (s *selector) isInstalled(version *entryVersion) bool {
	return s.installed != "" && key(version.version.Version, version.semver) == s.installedKey
}

// isDown reports whether a version is a downgrade that is not allowed, by semantic versions.
func (s *selector) isDown(version *entryVersion) bool {
	if s.options.AllowDowngrade || s.installedSemver == nil || version.semver == nil || s.isLeft(s.installed) {
		return false
	}
	return version.semver.LessThan(s.installedSemver)
}

// isLeft reports whether core installations have to leave a version, for example because it was compromised.
func (s *selector) isLeft(version string) bool {
	return s.options.Core && version != "" && s.entry.Left(version)
}

// updateAbove is the newest fitting version above one; pre-releases count only above a pre-release.
func (s *selector) updateAbove(current *semver.Version) string {
	if current == nil || s.entry.Type == v1.CatalogueCore && !s.options.Core {
		return ""
	}
	best := s.newestFitting(current.Prerelease() != "")
	if best == nil || !best.semver.GreaterThan(current) {
		return ""
	}
	return best.version.Version
}

func (s *selector) newestFitting(preReleases bool) *entryVersion {
	for i := range s.entry.versions {
		version := &s.entry.versions[i]
		if version.semver == nil || version.isReserved() || s.isLeft(version.version.Version) {
			continue
		}
		if version.semver.Prerelease() != "" && !preReleases {
			continue
		}
		if reason, _ := s.platform.fits(version.kkp, version.k8s); reason == "" {
			return version
		}
	}
	return nil
}

// fitting is the newest version that fits, and how to allow it if it is lower.
func (s *selector) fitting() (version, wayDown string) {
	best := s.newestFitting(false)
	if best == nil {
		return "", ""
	}
	if s.isDown(best) {
		wayDown = s.options.wayDown()
	}
	return best.version.Version, wayDown
}

// known lists existing versions, to help with a mistyped one.
func (s *selector) known() string {
	const most = 5
	names := make([]string, 0, len(s.entry.versions))
	for _, version := range s.entry.versions {
		names = append(names, version.version.Version)
	}
	return "it has " + text.Names(names, most)
}

func (s *selector) unknown(detail string) Refusal {
	return &VersionUnknownError{Addon: string(s.entry.Addon.Name), Wanted: s.wanted, Detail: detail}
}

func (s *selector) withdrawn() Refusal {
	fitting, wayDown := s.fitting()
	return &WithdrawnError{Addon: string(s.entry.Addon.Name), Installed: s.installed, Fitting: fitting, WayDown: wayDown}
}

func (s *selector) downgrade(version *entryVersion) Refusal {
	return &DowngradeRefusedError{
		Addon: string(s.entry.Addon.Name), Version: version.version.Version, Installed: s.installed,
		WayDown: s.options.wayDown(),
	}
}

func (s *selector) incompatible(version *entryVersion, reason, message string) Refusal {
	fitting, wayDown := s.fitting()
	return &IncompatibleError{
		Addon: string(s.entry.Addon.Name), Version: version.version.Version,
		Excluded: reason, Message: message, Fitting: fitting, WayDown: wayDown,
	}
}
