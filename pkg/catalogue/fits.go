package catalogue

import (
	"fmt"

	"github.com/Masterminds/semver/v3"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// OutsideKKP is the KKPVersion of a cluster that KKP does not run: versions with a constraint on KKP do not fit.
const OutsideKKP = "outside of KKP"

// Platform has the versions that constraints are compared with, as raw texts: PlatformVersion parses them.
type Platform struct {
	// KKPVersion such as v2.31.0-3-g2974df5. If it can't be parsed, only versions without that constraint fit.
	KKPVersion string
	// K8sVersion of the control plane, such as v1.36.3-gke.100. If it can't be parsed: likewise.
	K8sVersion string
	// Next are the versions of a waiting upgrade, in order; usually none. Of a range's versions, Select prefers those
	// that also fit the first of them, and of these those that also fit the second. Next excludes no version.
	Next []string
	// AllowPrereleases makes a pre-release platform match ranges that name no pre-release.
	AllowPrereleases bool
}

func readConstraints(version *v1.AddonVersion) (kkp, k8s *constraintRange) {
	if version.Constraints == nil {
		return nil, nil
	}
	return readConstraint(version.Constraints.KKPVersion), readConstraint(version.Constraints.K8sVersion)
}

// platformCheck decides for one platform. It caches the result by range: many versions share a few ranges.
type platformCheck struct {
	kkp, k8s side
	// next are the versions of a waiting upgrade.
	next []side
}

// side is one version of a platform, with its names in messages.
type side struct {
	reason, field, product, text string
	version                      *semver.Version
	preReleases                  bool
	seen                         map[string]exclusion
}

type exclusion struct{ reason, message string }

func newPlatformCheck(platform Platform) *platformCheck {
	made := &platformCheck{
		kkp: side{reason: v1.ExcludedKKPVersion, field: "kkpVersion", product: "KKP", text: platform.KKPVersion},
		k8s: side{reason: v1.ExcludedK8sVersion, field: "k8sVersion", product: "Kubernetes", text: platform.K8sVersion},
	}
	for _, version := range platform.Next {
		made.next = append(made.next, side{reason: v1.ExcludedK8sVersion, text: version})
	}
	all := []*side{&made.kkp, &made.k8s}
	for i := range made.next {
		all = append(all, &made.next[i])
	}
	for _, one := range all {
		one.preReleases, one.seen = platform.AllowPrereleases, map[string]exclusion{}
		if version, ok := PlatformVersion(one.text); ok {
			one.version = version
		}
	}
	return made
}

// fits returns "" if a version with these constraints fits, otherwise v1.ExcludedKKPVersion, v1.ExcludedK8sVersion or
// v1.ExcludedConstraintInvalid, and a message with the requirement.
func (j *platformCheck) fits(kkp, k8s *constraintRange) (reason, message string) {
	if reason, message = j.kkp.fits(kkp); reason != "" {
		return reason, message
	}
	return j.k8s.fits(k8s)
}

// ahead is how many of the next versions, from the first on, a version with this constraint fits.
func (j *platformCheck) ahead(k8s *constraintRange) int {
	for i := range j.next {
		if reason, _ := j.next[i].fits(k8s); reason != "" {
			return i
		}
	}
	return len(j.next)
}

func (s *side) fits(constraint *constraintRange) (reason, message string) {
	if constraint == nil {
		return "", ""
	}
	said, ok := s.seen[constraint.text]
	if !ok {
		said = s.compare(constraint)
		s.seen[constraint.text] = said
	}
	return said.reason, said.message
}

func (s *side) compare(constraint *constraintRange) exclusion {
	switch {
	case constraint.err != nil:
		return exclusion{v1.ExcludedConstraintInvalid, fmt.Sprintf("constraints.%s: %v", s.field, constraint.err)}
	case s.version == nil && s.text == OutsideKKP:
		return exclusion{s.reason, fmt.Sprintf("needs %s %s; %s does not manage the cluster", s.product, constraint.text, s.product)}
	case s.version == nil && s.text == "":
		return exclusion{s.reason, fmt.Sprintf("needs %s %s; the version is not known yet", s.product, constraint.text)}
	case s.version == nil:
		return exclusion{s.reason, fmt.Sprintf("needs %s %s; %q is not a version", s.product, constraint.text, s.text)}
	case !constraint.parsed.Contains(s.version, s.preReleases):
		return exclusion{s.reason, fmt.Sprintf("needs %s %s; it is %s", s.product, constraint.text, s.version)}
	}
	return exclusion{}
}

// Named is a version with its catalogue, in the spelling of the entry. Without entry or version it returns false and
// the version as given.
func (e *Entry) Named(version string) (VersionOrigin, bool) {
	if e != nil {
		if found := e.find(version); found != nil {
			return found.named(), true
		}
	}
	return VersionOrigin{Version: version}, false
}

// Unfit is the reason why a version of the entry does not fit a platform; nil: it fits.
func (e *Entry) Unfit(version string, platform Platform) *IncompatibleError {
	found := e.find(version)
	reason, message := newPlatformCheck(platform).fits(found.kkp, found.k8s)
	if reason == "" {
		return nil
	}
	return &IncompatibleError{
		Addon: string(e.Addon.Name), Version: found.version.Version, Excluded: reason, Message: message,
	}
}

// FitsKubernetes reports whether a version of the entry fits a Kubernetes version, regardless of its constraint on
// KKP. It is true for versions that the entry does not have, or whose range can't be parsed.
func (e *Entry) FitsKubernetes(version string, platform Platform) bool {
	found := e.find(version)
	if found == nil {
		return true
	}
	reason, _ := newPlatformCheck(platform).k8s.fits(found.k8s)
	return reason != v1.ExcludedK8sVersion
}

// Bridges reports whether one version does not fit the first of the next versions of Kubernetes, and another does.
// Without next versions none does.
func (e *Entry) Bridges(from, to string, platform Platform) bool {
	if len(platform.Next) == 0 {
		return false
	}
	platform.K8sVersion, platform.Next = platform.Next[0], nil
	return !e.FitsKubernetes(from, platform) && e.FitsKubernetes(to, platform)
}

// isReserved reports whether a version is only for installations that name it exactly, or have it.
func (v *entryVersion) isReserved() bool { return v.version.Draft || v.version.Deprecated != "" }

// Fitting is the newest version that fits both platforms and is not lower than the installed one; otherwise the
// newest that fits the second platform, or nil.
func (e *Entry) Fitting(installed string, from, to Platform) (named *VersionOrigin, fitsNow bool) {
	now, then, current := newPlatformCheck(from), newPlatformCheck(to), addonVersion(installed)
	for _, version := range e.versions {
		if version.semver == nil || version.isReserved() || version.semver.Prerelease() != "" {
			continue
		}
		if reason, _ := then.fits(version.kkp, version.k8s); reason != "" {
			continue
		}
		candidate := version.named()
		isDown := current != nil && version.semver.LessThan(current)
		if reason, _ := now.fits(version.kkp, version.k8s); reason == "" && !isDown {
			return &candidate, true
		}
		if named == nil {
			named = &candidate
		}
	}
	return named, false
}
