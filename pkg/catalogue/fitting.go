package catalogue

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

// Unfit says why a version of the entry does not fit a platform; nil where it does. It names no
// other version.
func (e *Entry) Unfit(version string, platform Platform) *IncompatibleError {
	found := e.find(version)
	reason, message := newJudge(platform).fits(found.kkp, found.k8s)
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
	now, then, current := newJudge(from), newJudge(to), addonVersion(installed)
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
