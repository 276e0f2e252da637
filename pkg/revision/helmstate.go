package revision

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	helmtime "helm.sh/helm/v3/pkg/time"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/hooks"
)

// Words that the helm program shows, from its pkg/action.
const (
	helmInstalling   = "Initial install underway"
	helmUpgrading    = "Preparing upgrade"
	helmInstalled    = "Install complete"
	helmUpgraded     = "Upgrade complete"
	helmRolledBack   = "Rollback complete"
	helmUninstalling = "Deletion in progress (or silently failed)"
)

// HooksRevision is what hooks of the record's Helm release run for.
func (r *Record) HooksRevision() hooks.Revision {
	found := hooks.Revision{Set: &r.Set, Owner: r.Owner(), TargetNamespace: r.TargetNamespace, Shown: r}
	if r.Helm != nil {
		found.Release = apply.HelmMarks{ReleaseName: r.Helm.Name, ReleaseNamespace: r.Helm.Namespace}
		found.Number, found.Time = r.Helm.Revision, r.Helm.LastDeployed
	}
	return found
}

// Begin gives the revision of a Helm release its action, and the status that goes with it. Nothing is changed where there is
// no Helm release.
func (r *Record) Begin(action hooks.Action) {
	if r.Helm == nil {
		return
	}
	r.Action = action
	r.Pending()
}

// Deployed says that the revision of the Helm release is complete: its objects are there, and its hooks have run.
func (r *Record) Deployed() {
	descriptions := map[hooks.Action]string{hooks.ActionInstall: helmInstalled, hooks.ActionUpgrade: helmUpgraded}
	if r.Helm != nil && r.Helm.Status == helmrelease.StatusFailed.String() {
		descriptions[hooks.ActionRollback] = helmRolledBack // what it said before is gone with the failure
	}
	r.setHelm(helmrelease.StatusDeployed, descriptions[r.Action])
}

// GoOnAfter gives the Helm release a number after one that somebody made, as what it is by then.
func (r *Record) GoOnAfter(revision int, now metav1.Time) {
	if r.Helm == nil {
		return
	}
	helm := *r.Helm
	helm.Revision, helm.LastDeployed, helm.TakenOver = max(helm.Revision, revision+1), now, true
	helm.Description = helmUpgraded
	r.Helm = &helm
}

// IsDeployed says whether a Helm release was complete at this revision. Records of before hooks were run don't tell by their
// status: it was written beforehand.
func (r *Record) IsDeployed() bool {
	if r.Helm == nil {
		return false
	}
	return r.State == StateApplied && (r.Action == "" || r.Helm.Status == helmrelease.StatusDeployed.String())
}

// Pending has the Helm release be under way.
func (r *Record) Pending() {
	switch r.Action {
	case hooks.ActionInstall:
		r.setHelm(helmrelease.StatusPendingInstall, helmInstalling)
	case hooks.ActionRollback:
		r.setHelm(helmrelease.StatusPendingRollback, "")
	case hooks.ActionUpgrade, hooks.ActionDelete:
		r.setHelm(helmrelease.StatusPendingUpgrade, helmUpgrading)
	}
}

// Failed says why the action failed.
func (r *Record) Failed(problem string) {
	subject := "Upgrade"
	switch r.Action {
	case hooks.ActionInstall:
		subject = "Release"
	case hooks.ActionRollback:
		subject = "Rollback"
	}
	r.setHelm(helmrelease.StatusFailed, fmt.Sprintf("%s %q failed: %s", subject, r.Helm.Name, problem))
}

// setHelm changes a copy: the release may be shared with another record. An empty description leaves the one there is.
func (r *Record) setHelm(status helmrelease.Status, description string) {
	if r.Helm == nil {
		return
	}
	helm := *r.Helm
	helm.Status, helm.Description = status.String(), cmp.Or(description, helm.Description)
	r.Helm = &helm
}

// Uninstalling is the Helm release as it is shown while it is removed; nil where there is none.
func (r *Record) Uninstalling() *helmrelease.Release {
	shown := *r
	shown.setHelm(helmrelease.StatusUninstalling, helmUninstalling)
	return shown.HelmObject()
}

// helmHooks are the hooks in Helm's own form. Their manifests are the objects as they are made here, since whoever runs one
// by hand needs its images and namespace.
func (r *Record) helmHooks() []*helmrelease.Hook {
	made := make([]*helmrelease.Hook, 0, len(r.Hooks))
	for _, hook := range r.Hooks {
		object, err := hook.Decode()
		if err != nil {
			continue // it can't be run either, which is told there
		}
		manifest, err := yaml.JSONToYAML(hook.Object)
		if err != nil {
			continue
		}
		made = append(made, &helmrelease.Hook{
			Name: object.GetName(), Kind: object.GetKind(), Path: hook.Path, Manifest: string(manifest), Weight: hook.Weight,
			Events: words[helmrelease.HookEvent](hook.Events), LastRun: lastRun(hook.Run),
			DeletePolicies:    words[helmrelease.HookDeletePolicy](hook.DeletePolicies),
			OutputLogPolicies: words[helmrelease.HookOutputLogPolicy](hook.LogPolicies),
		})
	}
	return slices.Clip(made)
}

func lastRun(r *hooks.Run) helmrelease.HookExecution {
	if r == nil {
		return helmrelease.HookExecution{}
	}
	return helmrelease.HookExecution{
		StartedAt: helmTime(r.Started), CompletedAt: helmTime(r.Ended),
		Phase: helmrelease.HookPhase(r.Phase),
	}
}

func words[W ~string](plain []string) []W {
	var typed []W
	for _, word := range plain {
		typed = append(typed, W(word))
	}
	return typed
}

// helmTime is a time of the record in Helm's form, as it is after the record was read again: finer, a restarted process would
// write another release than the one that is there.
func helmTime(at metav1.Time) helmtime.Time {
	return helmtime.Time{Time: at.UTC().Truncate(time.Second)}
}
