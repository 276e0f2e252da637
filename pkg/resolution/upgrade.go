package resolution

import (
	"errors"
	"fmt"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
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
	Options catalogue.SelectOptions
}

// UpgradeFinding is what an upgrade does to one installation.
type UpgradeFinding struct {
	Installation string  `json:"installation"`
	Addon        string  `json:"addon"`
	Outcome      Outcome `json:"outcome"`
	// Installed is the version that is installed; nil for none yet.
	Installed *catalogue.VersionOrigin `json:"installed,omitempty"`
	// Version is what will be installed where Outcome is Keeps or Moves.
	Version *catalogue.VersionOrigin `json:"version,omitempty"`
	// Reason and Message say why where Outcome is Breaks or Unknown; Reason is one of condition Compatible.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// BrokenNow is set where the outcome is Breaks and the version does not fit the present platform either.
	BrokenNow bool `json:"brokenNow,omitempty"`
	// Fitting is a version that fits the new platform, where Outcome is Breaks or Unknown: the newest one that fits the
	// present platform too and is not lower than the installed one, else the newest one. Nil where none does.
	Fitting *catalogue.VersionOrigin `json:"fitting,omitempty"`
	// FitsNow is set where Fitting fits the present platform too, so that the installation can move before the cluster does.
	FitsNow bool `json:"fitsNow,omitempty"`
}

// CheckUpgrade says what becomes of installations when their cluster moves from one platform to another, in the order they
// come in. Find gives the entry of an add-on; nil where no catalogue has it.
func CheckUpgrade(find func(addon string) *catalogue.Entry, installed []Installed, from, to catalogue.Platform) []UpgradeFinding {
	findings := make([]UpgradeFinding, 0, len(installed))
	for _, one := range installed {
		findings = append(findings, checkUpgrade(find(one.Addon), one, from, to))
	}
	return findings
}

func checkUpgrade(entry *catalogue.Entry, of Installed, from, to catalogue.Platform) UpgradeFinding {
	finding := UpgradeFinding{Installation: of.Name, Addon: of.Addon, Outcome: OutcomeUnknown}
	if of.Version != "" {
		finding.Installed = origin(entry, of.Version)
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
	if entry.Type != v1.CatalogueCore || of.Options.Core {
		finding.Fitting, finding.FitsNow = entry.Fitting(of.Version, from, to)
	}
	if outcome == OutcomeBreaks {
		now, _, _ := of.outcome(entry, from)
		finding.BrokenNow = now == OutcomeBreaks
	}
	return finding
}

// origin names a version as the entry spells it; as it came where the entry, which may be nil, has it not.
func origin(entry *catalogue.Entry, version string) *catalogue.VersionOrigin {
	named := catalogue.VersionOrigin{Version: version}
	if entry != nil {
		if known, found := entry.Named(version); found {
			named = known
		}
	}
	return &named
}

// outcome on one platform; version is what will be there, and nil beside a refusal.
func (i Installed) outcome(
	entry *catalogue.Entry, platform catalogue.Platform,
) (Outcome, *catalogue.VersionOrigin, catalogue.Refusal) {
	wanted := i.Wanted
	if i.Held && i.Version != "" {
		wanted = i.Version
	}
	selection, err := catalogue.Select(entry, wanted, i.Version, platform, i.Options)
	if err == nil {
		outcome := OutcomeMoves
		if i.Version != "" && catalogue.Key(selection.Version.Version) == catalogue.Key(i.Version) {
			outcome = OutcomeKeeps
		}
		return outcome, &catalogue.VersionOrigin{Version: selection.Version.Version, Catalogue: selection.Origin.Catalogue}, nil
	}
	var refusal catalogue.Refusal
	if !errors.As(err, &refusal) {
		return OutcomeUnknown, nil, nil // Every error of Select is a Refusal.
	}
	if _, unfit := errors.AsType[*catalogue.IncompatibleError](err); unfit {
		return OutcomeBreaks, nil, refusal
	}
	return i.standing(entry, platform, refusal)
}

// standing judges the installed version by itself, where what is wanted was refused for another reason than the platform.
func (i Installed) standing(
	entry *catalogue.Entry, platform catalogue.Platform, refusal catalogue.Refusal,
) (Outcome, *catalogue.VersionOrigin, catalogue.Refusal) {
	named, found := entry.Named(i.Version)
	if i.Version == "" || !found {
		return OutcomeUnknown, nil, refusal
	}
	if unfit, isUnfit := errors.AsType[*catalogue.IncompatibleError](entry.Fits(i.Version, platform)); isUnfit {
		return OutcomeBreaks, nil, unfit
	}
	return OutcomeKeeps, &named, nil
}
