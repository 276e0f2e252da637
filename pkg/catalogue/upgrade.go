package catalogue

import (
	"errors"
	"fmt"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Outcome is what an upgrade of a cluster does to an installation.
type Outcome string

const (
	// OutcomeKeeps: the installed version fits the new platform and stays.
	OutcomeKeeps Outcome = "Keeps"
	// OutcomeMoves: another version is chosen by itself, and fits.
	OutcomeMoves Outcome = "Moves"
	// OutcomeBreaks: the version does not fit the new platform, and none is chosen by itself. It stays installed, with
	// Compatible=False.
	OutcomeBreaks Outcome = "Breaks"
	// OutcomeUnknown: the catalogue can't tell, since it has not the add-on, or not the version, any more.
	OutcomeUnknown Outcome = "Unknown"
)

// Installed is an installation as CheckUpgrade looks at it.
type Installed struct {
	// Name of the installation and of its add-on.
	Name, Addon string
	// Wanted is addonRef.version, Version the installed one, empty for none.
	Wanted, Version string
	// Held is set where no other version is chosen whatever is wanted: the installation is paused, or its strategy is Once.
	Held    bool
	Options SelectOptions
}

// UpgradeFinding is what an upgrade does to one installation.
type UpgradeFinding struct {
	Installation string  `json:"installation"`
	Addon        string  `json:"addon"`
	Outcome      Outcome `json:"outcome"`
	// Installed is the version that is installed; nil for none yet.
	Installed *VersionOrigin `json:"installed,omitempty"`
	// Version is what will be installed where Outcome is Keeps or Moves.
	Version *VersionOrigin `json:"version,omitempty"`
	// Reason and Message say why where Outcome is Breaks or Unknown; Reason is one of condition Compatible.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// BrokenNow is set where the outcome is Breaks and the version does not fit the present platform either.
	BrokenNow bool `json:"brokenNow,omitempty"`
	// Fitting is a version that fits the new platform, where Outcome is Breaks or Unknown: the newest one that fits the
	// present platform too and is not lower than the installed one, else the newest one. Nil where none does.
	Fitting *VersionOrigin `json:"fitting,omitempty"`
	// FitsNow is set where Fitting fits the present platform too, so that the installation can move before the cluster does.
	FitsNow bool `json:"fitsNow,omitempty"`
}

// CheckUpgrade says what becomes of installations when their cluster moves from one platform to another, in the order they
// come in. Find gives the entry of an add-on; nil where no catalogue has it.
func CheckUpgrade(find func(addon string) *Entry, installed []Installed, from, to Platform) []UpgradeFinding {
	findings := make([]UpgradeFinding, 0, len(installed))
	for _, one := range installed {
		findings = append(findings, checkUpgrade(find(one.Addon), one, from, to))
	}
	return findings
}

func checkUpgrade(entry *Entry, of Installed, from, to Platform) UpgradeFinding {
	finding := UpgradeFinding{Installation: of.Name, Addon: of.Addon, Outcome: OutcomeUnknown}
	if of.Version != "" {
		finding.Installed = entry.origin(of.Version)
	}
	if entry == nil {
		finding.Reason = v1.ReasonAddonUnknown
		finding.Message = fmt.Sprintf("no catalogue has add-on %q", of.Addon)
		return finding
	}
	outcome, version, refusal := of.outcome(entry, to)
	finding.Outcome = outcome
	if refusal == nil {
		finding.Version = version
		return finding
	}
	finding.Reason, finding.Message = refusal.Reason(), refusal.Error()
	finding.Fitting, finding.FitsNow = entry.fitting(of, from, to)
	if outcome == OutcomeBreaks {
		now, _, _ := of.outcome(entry, from)
		finding.BrokenNow = now == OutcomeBreaks
	}
	return finding
}

// origin names a version as the entry spells it; as it came where the entry, which may be nil, has it not.
func (e *Entry) origin(version string) *VersionOrigin {
	named := VersionOrigin{Version: version}
	if e != nil {
		if found := e.find(version); found != nil {
			named = found.named()
		}
	}
	return &named
}

// outcome on one platform; version is what will be there, and nil beside a refusal.
func (i Installed) outcome(entry *Entry, platform Platform) (Outcome, *VersionOrigin, Refusal) {
	wanted := i.Wanted
	if i.Held && i.Version != "" {
		wanted = i.Version
	}
	selection, err := Select(entry, wanted, i.Version, platform, i.Options)
	if err == nil {
		outcome := OutcomeMoves
		if i.Version != "" && Key(selection.Version.Version) == Key(i.Version) {
			outcome = OutcomeKeeps
		}
		return outcome, &VersionOrigin{selection.Version.Version, selection.Origin.Catalogue}, nil
	}
	var refusal Refusal
	if !errors.As(err, &refusal) {
		return OutcomeUnknown, nil, nil // Every error of Select is a Refusal.
	}
	if _, unfit := errors.AsType[*IncompatibleError](err); unfit {
		return OutcomeBreaks, nil, refusal
	}
	return i.standing(entry, platform, refusal)
}

// standing judges the installed version by itself, where what is wanted was refused for another reason than the platform.
func (i Installed) standing(entry *Entry, platform Platform, refusal Refusal) (Outcome, *VersionOrigin, Refusal) {
	found := entry.find(i.Version)
	if i.Version == "" || found == nil {
		return OutcomeUnknown, nil, refusal
	}
	if reason, message := newJudge(platform).fits(found.kkp, found.k8s); reason != "" {
		return OutcomeBreaks, nil, &IncompatibleError{
			Addon: string(entry.Addon.Name), Version: found.version.Version, Excluded: reason, Message: message,
		}
	}
	named := found.named()
	return OutcomeKeeps, &named, nil
}

// fitting is the newest version that fits both platforms and is not lower than the installed one, else the newest that fits
// the second platform.
func (e *Entry) fitting(of Installed, from, to Platform) (named *VersionOrigin, fitsNow bool) {
	if e.Type == v1.CatalogueCore && !of.Options.Core {
		return nil, false
	}
	now, then, installed := newJudge(from), newJudge(to), addonVersion(of.Version)
	for _, version := range e.versions {
		if version.semver == nil || version.version.Deprecated != "" || version.semver.Prerelease() != "" {
			continue
		}
		if reason, _ := then.fits(version.kkp, version.k8s); reason != "" {
			continue
		}
		candidate := version.named()
		isDown := installed != nil && version.semver.LessThan(installed)
		if reason, _ := now.fits(version.kkp, version.k8s); reason == "" && !isDown {
			return &candidate, true
		}
		if named == nil {
			named = &candidate
		}
	}
	return named, false
}
