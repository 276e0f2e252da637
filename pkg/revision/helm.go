package revision

import (
	helm "helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-addons/trellis/pkg/helmrelease"
	"github.com/trellis-addons/trellis/pkg/hooks"
)

// A revision of a Helm release says what becomes of it. Each change is one of a copy: the release
// may be shared with another record. Nothing is changed where there is no Helm release.

// Begin gives the revision its action, and the status that goes with it.
func (r *Record) Begin(action hooks.Action) {
	if r.Helm != nil {
		r.Action = action
		r.Pending()
	}
}

// Pending says that the action is under way.
func (r *Record) Pending() {
	if r.Helm != nil {
		r.Helm = r.Helm.Pending(r.Action)
	}
}

// Failed says why the action failed.
func (r *Record) Failed(problem string) {
	if r.Helm != nil {
		r.Helm = r.Helm.Failed(r.Action, problem)
	}
}

// Deployed says that the revision is complete: its objects are there, and its hooks have run.
func (r *Record) Deployed() {
	if r.Helm != nil {
		r.Helm = r.Helm.Deployed(r.Action)
	}
}

// ContinueAfter gives the Helm release a number after one that somebody made.
func (r *Record) ContinueAfter(revision int, now metav1.Time) {
	if r.Helm != nil {
		r.Helm = r.Helm.After(revision, now)
	}
}

// IsDeployed says whether the Helm release was complete at this revision. Records of before hooks
// were run don't tell by their status: it was written beforehand.
func (r *Record) IsDeployed() bool {
	return r.Helm != nil && r.State == StateApplied && (r.Action == "" || r.Helm.IsDeployed())
}

// HasDeletionHooks says whether hooks of an event of the removal are to be run. A release that never
// came to its end has none: what they work on is not there.
func (r *Record) HasDeletionHooks(event string) bool {
	return r.Helm != nil && (r.IsApplied() || r.Action != hooks.ActionInstall) && r.HasHooks(event)
}

// HelmObject is the release in Helm's own form; nil where there is none.
func (r *Record) HelmObject() *helm.Release {
	if r.Helm == nil {
		return nil
	}
	return r.Helm.Object(r.Owner(), r.Hooks)
}

// Uninstalling is the release in Helm's own form, as it is shown while it is removed.
func (r *Record) Uninstalling() *helm.Release {
	return r.Helm.Uninstalling().Object(r.Owner(), r.Hooks)
}

// HooksRevision is what hooks of the Helm release run for.
func (r *Record) HooksRevision() hooks.Revision {
	found := hooks.Revision{Set: &r.Set, Owner: r.Owner(), TargetNamespace: r.TargetNamespace, Shown: r}
	if r.Helm != nil {
		found.Release, found.Number, found.Time = r.Helm.Marks(), r.Helm.Revision, r.Helm.LastDeployed
	}
	return found
}

// NextAction is what a revision after another one does to a Helm release. Until it was deployed once,
// each attempt installs: the hooks that an installation needs would never run otherwise.
func NextAction(previous *Record, next *helmrelease.Release) hooks.Action {
	switch {
	case next != nil && next.TakenOver:
		return hooks.ActionUpgrade // somebody installed it
	case next == nil || previous == nil || previous.Helm == nil:
	case previous.Helm.Name != next.Name || previous.Helm.Namespace != next.Namespace:
	case previous.Action == hooks.ActionInstall && !previous.IsDeployed():
	case previous.Action == "" && previous.State == StateIntent && previous.From == "":
	default:
		return hooks.ActionUpgrade
	}
	return hooks.ActionInstall
}
