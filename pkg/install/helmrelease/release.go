package helmrelease

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	helm "helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/hooks"
)

// Release is a revision as a Helm release of the user cluster shows it.
type Release struct {
	// Name is the result of NameFor, unless the catalogue sets a name.
	Name         string `json:"name"`
	Namespace    string `json:"namespace"`
	Revision     int    `json:"revision"`
	Status       string `json:"status"`
	ChartName    string `json:"chartName"`
	ChartVersion string `json:"chartVersion"`
	AppVersion   string `json:"appVersion,omitempty"`
	// Manifest is the rendered YAML, as `helm get manifest` shows it.
	Manifest string `json:"manifest,omitempty"`
	// Config has the values given to the chart, without the reserved key kkp.
	Config map[string]any `json:"config,omitempty"`
	// FirstDeployed is the time of revision 1, and LastDeployed the time of this one.
	FirstDeployed metav1.Time `json:"firstDeployed"`
	LastDeployed  metav1.Time `json:"lastDeployed"`
	// Adopted says that earlier revisions belong to others, and must be adopted.
	Adopted     bool   `json:"takenOver,omitempty"`
	Description string `json:"description,omitempty"`
}

// NameFor is the Helm release's name for an installation: its own up to Helm's 53 characters, otherwise the first 44,
// "-" and 8 hex digits of the whole name's SHA-256.
func NameFor(installation string) string {
	if len(installation) <= 53 {
		return installation
	}
	sum := sha256.Sum256([]byte(installation))
	// A dot must not be followed by a dash.
	return strings.TrimRight(installation[:44], ".") + "-" + hex.EncodeToString(sum[:4])
}

// Secret is the name of the Secret that shows a revision of a Helm release.
func (r *Release) Secret() string { return fmt.Sprintf(nameFormat, r.Name, r.Revision) }

// IsSameChart says whether two releases are of the same version of one chart, or both are nil.
func (r *Release) IsSameChart(other *Release) bool {
	if r == nil || other == nil {
		return r == other
	}
	return r.Name == other.Name && r.ChartName == other.ChartName && r.ChartVersion == other.ChartVersion
}

// Marks are the marks that helm, and we as helm, put on the release's objects.
func (r *Release) Marks() ownership.HelmMarks {
	return ownership.HelmMarks{ReleaseName: r.Name, ReleaseNamespace: r.Namespace}
}

// Helm's own descriptions, from its pkg/action.
const (
	installing   = "Initial install underway"
	upgrading    = "Preparing upgrade"
	installed    = "Install complete"
	upgraded     = "Upgrade complete"
	rolledBack   = "Rollback complete"
	uninstalling = "Deletion in progress (or silently failed)"
)

// Pending is the release while an action is under way.
func (r Release) Pending(action hooks.Action) *Release {
	switch action {
	case hooks.ActionInstall:
		return r.as(helm.StatusPendingInstall, installing)
	case hooks.ActionRollback:
		return r.as(helm.StatusPendingRollback, "")
	case hooks.ActionUpgrade, hooks.ActionDelete:
		return r.as(helm.StatusPendingUpgrade, upgrading)
	}
	return &r
}

// Deployed is the release once an action is complete: its objects exist, its hooks have run.
func (r Release) Deployed(action hooks.Action) *Release {
	switch {
	case action == hooks.ActionInstall:
		return r.as(helm.StatusDeployed, installed)
	case action == hooks.ActionUpgrade:
		return r.as(helm.StatusDeployed, upgraded)
	case action == hooks.ActionRollback && r.Status == helm.StatusFailed.String():
		return r.as(helm.StatusDeployed, rolledBack) // the failure replaced its description
	}
	return r.as(helm.StatusDeployed, "")
}

// Failed is the release after an action that failed.
func (r Release) Failed(action hooks.Action, problem string) *Release {
	subject := "Upgrade"
	switch action {
	case hooks.ActionInstall:
		subject = "Release"
	case hooks.ActionRollback:
		subject = "Rollback"
	}
	return r.as(helm.StatusFailed, fmt.Sprintf("%s %q failed: %s", subject, r.Name, problem))
}

// Uninstalling is the release while it is removed.
func (r Release) Uninstalling() *Release { return r.as(helm.StatusUninstalling, uninstalling) }

// IsDeployed says whether the release is shown as complete.
func (r *Release) IsDeployed() bool { return r.Status == helm.StatusDeployed.String() }

// After is the release, adopted, with a number after a revision that others made.
func (r Release) After(revision int, now metav1.Time) *Release {
	r.Revision, r.LastDeployed, r.Adopted, r.Description = max(r.Revision, revision+1), now, true, upgraded
	return &r
}

// as sets a status. An empty description keeps the present one.
func (r Release) as(status helm.Status, description string) *Release {
	r.Status, r.Description = status.String(), cmp.Or(description, r.Description)
	return &r
}
