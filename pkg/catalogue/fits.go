package catalogue

import (
	"fmt"

	"github.com/Masterminds/semver/v3"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Platform is what a version's constraints are compared with. Both versions are as found; PlatformVersion reads them.
type Platform struct {
	// KKPVersion is the platform's, such as v2.31.0-3-g2974df5. Empty or unreadable: only versions without that constraint fit.
	KKPVersion string
	// K8sVersion is the cluster's control plane's, such as v1.36.3-gke.100. Empty or unreadable: likewise.
	K8sVersion string
	// AllowPrereleases lets a platform that is a pre-release lie in ranges that name none.
	AllowPrereleases bool
}

func readConstraints(version *v1.AddonVersion) (kkp, k8s *constraintRange) {
	if version.Constraints == nil {
		return nil, nil
	}
	return readConstraint(version.Constraints.KKPVersion), readConstraint(version.Constraints.K8sVersion)
}

// platformCheck decides for one platform. It remembers what it said about a range, since thousands of versions share a few.
type platformCheck struct {
	kkp, k8s side
}

// side is one of the two versions of a platform with the words for it.
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
	for _, one := range []*side{&made.kkp, &made.k8s} {
		one.preReleases, one.seen = platform.AllowPrereleases, map[string]exclusion{}
		if version, ok := PlatformVersion(one.text); ok {
			one.version = version
		}
	}
	return made
}

// fits says whether a version with these constraints fits: both results are empty then. Otherwise reason is one of
// v1.ExcludedKKPVersion, v1.ExcludedK8sVersion and v1.ExcludedConstraintInvalid, and message says what would be needed.
func (j *platformCheck) fits(kkp, k8s *constraintRange) (reason, message string) {
	if reason, message = j.kkp.fits(kkp); reason != "" {
		return reason, message
	}
	return j.k8s.fits(k8s)
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
	case s.version == nil && s.text == "":
		return exclusion{s.reason, fmt.Sprintf("needs %s %s; the version is not known yet", s.product, constraint.text)}
	case s.version == nil:
		return exclusion{s.reason, fmt.Sprintf("needs %s %s; %q is no version", s.product, constraint.text, s.text)}
	case !constraint.parsed.Contains(s.version, s.preReleases):
		return exclusion{s.reason, fmt.Sprintf("needs %s %s; it is %s", s.product, constraint.text, s.version)}
	}
	return exclusion{}
}

// Named is a version with its catalogue, as the entry spells it. The entry may be nil; where it has
// the version not, that is as it came, and false.
func (e *Entry) Named(version string) (VersionOrigin, bool) {
	if e != nil {
		if found := e.find(version); found != nil {
			return found.named(), true
		}
	}
	return VersionOrigin{Version: version}, false
}

// Unfit says why a version of the entry does not fit a platform, without another; nil where it does.
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

// Fitting is the newest version that fits both platforms and is not lower than the installed one,
// else the newest that fits the second platform; nil where none does.
func (e *Entry) Fitting(installed string, from, to Platform) (named *VersionOrigin, fitsNow bool) {
	now, then, current := newPlatformCheck(from), newPlatformCheck(to), addonVersion(installed)
	for _, version := range e.versions {
		if version.semver == nil || version.version.Deprecated != "" || version.semver.Prerelease() != "" {
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
