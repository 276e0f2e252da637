package catalogue

import (
	"fmt"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Refusal is the reason why Select chose no version: one of the errors below.
type Refusal interface {
	error
	// Reason is the reason of condition Compatible.
	Reason() string
}

// VersionUnknownError reports that the add-on has no such version, or none in the range.
type VersionUnknownError struct {
	Addon, Wanted string
	// Detail is the reason, and how to correct it.
	Detail string
}

func (e *VersionUnknownError) Error() string {
	if e.Wanted == "" {
		return fmt.Sprintf("add-on %q has no version to choose: %s", e.Addon, e.Detail)
	}
	return fmt.Sprintf("add-on %q has no version %q: %s", e.Addon, e.Wanted, e.Detail)
}

// Reason implements Refusal.
func (e *VersionUnknownError) Reason() string { return v1.ReasonVersionUnknown }

// IncompatibleError reports that a version does not fit the cluster, or that it is a core add-on.
type IncompatibleError struct {
	Addon, Version string
	// Excluded is one of the reasons v1.Excluded….
	Excluded string
	// Message is the version's requirement.
	Message string
	// Fitting is the newest version that would fit; may be empty.
	Fitting string
	// WayDown says how to allow Fitting, which would be a downgrade; empty: it is none.
	WayDown string
}

func (e *IncompatibleError) Error() string {
	text := fmt.Sprintf("version %q of add-on %q does not fit: %s", e.Version, e.Addon, e.Message)
	if e.Excluded == v1.ExcludedCore {
		return fmt.Sprintf("add-on %q: %s", e.Addon, e.Message)
	}
	if e.Fitting == "" {
		return text + "; no version fits"
	}
	return text + wouldFit(e.Fitting, e.WayDown)
}

// Reason implements Refusal.
func (e *IncompatibleError) Reason() string { return e.Excluded }

// DowngradeRefusedError reports that a version is lower than the installed one.
type DowngradeRefusedError struct {
	Addon, Version, Installed string
	// WayDown says how to allow it.
	WayDown string
}

func (e *DowngradeRefusedError) Error() string {
	return fmt.Sprintf("version %q of add-on %q is lower than the installed %q: %s", e.Version, e.Addon, e.Installed, e.WayDown)
}

// Reason implements Refusal.
func (e *DowngradeRefusedError) Reason() string { return v1.ReasonDowngradeRefused }

// WithdrawnError reports that the installed version is no longer in the catalogue. It stays installed.
type WithdrawnError struct {
	Addon, Installed string
	Fitting          string
	// WayDown is as in IncompatibleError.
	WayDown string
}

func (e *WithdrawnError) Error() string {
	text := fmt.Sprintf("installed version %q of add-on %q was removed from the catalogue and stays installed", e.Installed, e.Addon)
	if e.Fitting == "" {
		return text
	}
	return text + wouldFit(e.Fitting, e.WayDown)
}

// Reason implements Refusal.
func (e *WithdrawnError) Reason() string { return v1.ReasonWithdrawn }

// wouldFit ends a refusal with the version that fits, and how to allow a downgrade.
func wouldFit(version, wayDown string) string {
	if wayDown == "" {
		return fmt.Sprintf("; version %q would fit", version)
	}
	return fmt.Sprintf("; version %q would fit, but it is lower: %s", version, wayDown)
}

// wayDown says how to allow a downgrade of an installation.
func (o SelectOptions) wayDown() string {
	if o.BySet {
		return fmt.Sprintf("add %q to field allow of the set's item to permit it", v1.PermissionDowngrade)
	}
	return fmt.Sprintf("set annotation %s to \"true\" to permit it", v1.AnnotationAllowDowngrade)
}
