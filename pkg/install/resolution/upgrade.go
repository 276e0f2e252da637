package resolution

import (
	"errors"
	"fmt"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
)

// Outcome is the effect of a cluster's upgrade on an installation.
type Outcome string

const (
	// OutcomeKeeps: the installed version fits the new platform and stays.
	OutcomeKeeps Outcome = "Keeps"
	// OutcomeMoves: another version is chosen automatically, and fits.
	OutcomeMoves Outcome = "Moves"
	// OutcomeBreaks: no version fits automatically. The installed one stays, with Compatible=False.
	OutcomeBreaks Outcome = "Breaks"
	// OutcomeUnknown: the catalogue no longer has the add-on, or the version.
	OutcomeUnknown Outcome = "Unknown"
)

// UpgradeFinding is the effect of an upgrade on one installation.
type UpgradeFinding struct {
	Installation string                   `json:"installation"`
	Addon        string                   `json:"addon"`
	Outcome      Outcome                  `json:"outcome"`
	Installed    *catalogue.VersionOrigin `json:"installed,omitempty"`
	// Version is the one to install if Outcome is Keeps or Moves.
	Version *catalogue.VersionOrigin `json:"version,omitempty"`
	// Reason, one of condition Compatible, and Message explain Breaks and Unknown.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// BrokenNow is set with Breaks if the version does not fit the present platform either.
	BrokenNow bool `json:"brokenNow,omitempty"`
	// Fitting, with Breaks or Unknown, is the newest version that fits both platforms and is no downgrade; otherwise
	// the newest that fits the new one. Nil if none does.
	Fitting *catalogue.VersionOrigin `json:"fitting,omitempty"`
	// FitsNow says that Fitting also fits the present platform: the installation can move first.
	FitsNow bool `json:"fitsNow,omitempty"`
	// HeldBy are finalizers of others on the installation, at most eight: they would delay the deletion of its set or
	// Cluster.
	HeldBy []string `json:"heldBy,omitempty"`
}

// holdersAtMost is the maximum number of finalizers in a finding.
const holdersAtMost = 8

// CheckUpgrade returns, in order, the effect on installations if their cluster gets another version of Kubernetes.
// Find returns the entry of an add-on; nil if there is none. A pinned version counts as its exact version, regardless
// of its content: constraints are not part of the content.
func CheckUpgrade(find func(addon string) *catalogue.Entry, requests []Request, kubernetes string) []UpgradeFinding {
	findings := make([]UpgradeFinding, 0, len(requests))
	for _, request := range requests {
		findings = append(findings, request.checkUpgrade(find(request.addon()), kubernetes))
	}
	return findings
}

func (r Request) checkUpgrade(entry *catalogue.Entry, kubernetes string) UpgradeFinding {
	finding := UpgradeFinding{Installation: r.Installation.Name, Addon: r.addon(), Outcome: OutcomeUnknown}
	finding.HeldBy = installation.Foreign(r.Installation)
	finding.HeldBy = finding.HeldBy[:min(len(finding.HeldBy), holdersAtMost)]
	if r.Installed != "" {
		named, _ := entry.Named(r.Installed)
		finding.Installed = &named
	}
	if entry == nil {
		finding.Reason = v1.ReasonAddonUnknown
		finding.Message = fmt.Sprintf("no catalogue has add-on %q", r.addon())
		return finding
	}
	upgraded := r
	upgraded.Cluster.KubernetesVersion, upgraded.Cluster.Upgrade = kubernetes, nil
	outcome, version, refusal := upgraded.outcome(entry)
	finding.Outcome = outcome
	if refusal == nil {
		finding.Version = version
		return finding
	}
	finding.Reason, finding.Message = refusal.Reason(), refusal.Error()
	if entry.Type != v1.CatalogueCore || r.Installation.Spec.CoreAddon {
		finding.Fitting, finding.FitsNow = entry.Fitting(r.Installed, r.platform(entry), upgraded.platform(entry))
	}
	if outcome == OutcomeBreaks {
		now, _, _ := r.outcome(entry)
		finding.BrokenNow = now == OutcomeBreaks
	}
	return finding
}

// outcome returns the version to install, nil with a refusal. If the installation is paused, or its strategy is Once,
// only the installed version can be chosen.
func (r Request) outcome(entry *catalogue.Entry) (Outcome, *catalogue.VersionOrigin, catalogue.Refusal) {
	spec := r.Installation.Spec
	wanted := spec.AddonRef.Version
	if (spec.Paused || spec.ReconcileStrategy == v1.ReconcileOnce) && r.Installed != "" {
		wanted = r.Installed
	}
	choice, refusal := r.choose(entry, wanted)
	if refusal == nil {
		outcome := OutcomeMoves
		if r.Installed != "" && catalogue.Key(choice.Version.Version) == catalogue.Key(r.Installed) {
			outcome = OutcomeKeeps
		}
		named, _ := entry.Named(choice.Version.Version)
		return outcome, &named, nil
	}
	if _, unfit := errors.AsType[*catalogue.IncompatibleError](refusal); unfit {
		return OutcomeBreaks, nil, refusal
	}
	return r.installedOutcome(entry, refusal)
}

// installedOutcome is the outcome for a version that was refused for another reason than the platform.
func (r Request) installedOutcome(
	entry *catalogue.Entry, refusal catalogue.Refusal,
) (Outcome, *catalogue.VersionOrigin, catalogue.Refusal) {
	named, found := entry.Named(r.Installed)
	if !found {
		return OutcomeUnknown, nil, refusal
	}
	if unfit := entry.Unfit(r.Installed, r.platform(entry)); unfit != nil {
		return OutcomeBreaks, nil, unfit
	}
	return OutcomeKeeps, &named, nil
}
