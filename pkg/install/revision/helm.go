package revision

import (
	helm "helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-addons/trellis/pkg/install/helmrelease"
	"github.com/trellis-addons/trellis/pkg/install/hooks"
)

// Begin sets the revision's action, if it has a Helm release or hooks, and the pending status. Like the following
// methods, it copies the Helm release, which another record may share.
func (r *Record) Begin(action hooks.Action) {
	r.Action = ""
	if r.Helm != nil || len(r.Hooks) > 0 {
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

// Failed records why the action failed.
func (r *Record) Failed(problem string) {
	if r.Helm != nil {
		r.Helm = r.Helm.Failed(r.Action, problem)
	}
}

// Deployed says that the revision's objects exist, and its hooks have run.
func (r *Record) Deployed() {
	if r.Helm != nil {
		r.Helm = r.Helm.Deployed(r.Action)
	}
}

// ContinueAfter numbers the Helm release after a revision that another client made.
func (r *Record) ContinueAfter(revision int, now metav1.Time) {
	if r.Helm != nil {
		r.Helm = r.Helm.After(revision, now)
	}
}

// IsDeployed says whether the Helm release was complete; without an action its status is no proof.
func (r *Record) IsDeployed() bool {
	return r.Helm != nil && r.State == StateApplied && (r.Action == "" || r.Helm.IsDeployed())
}

// HasDeletionHooks says whether hooks of an event of the removal must run. A first revision that was never applied
// completely has none: the objects for them do not exist. The first revision of a Helm release does not count as
// first if another version of the add-on was applied before, such as one of go-template.
func (r *Record) HasDeletionHooks(event string) bool {
	isFirst := r.Action == hooks.ActionInstall && r.From == ""
	return (r.IsApplied() || !isFirst) && r.HasHooks(event)
}

// HelmObject is the release in Helm's own form; nil if there is none.
func (r *Record) HelmObject() *helm.Release {
	if r.Helm == nil {
		return nil
	}
	return r.Helm.Object(r.Owner(), r.Hooks)
}

// Uninstalling is HelmObject during a removal.
func (r *Record) Uninstalling() *helm.Release {
	return r.Helm.Uninstalling().Object(r.Owner(), r.Hooks)
}

// HooksRevision is the revision that hooks run for: that of the Helm release or, for go-template, the record's. Its
// time stays the same while hooks of an event run.
func (r *Record) HooksRevision() hooks.Revision {
	found := hooks.Revision{
		Set: &r.Set, Owner: r.Owner(), TargetNamespace: r.TargetNamespace, Shown: r, Number: r.Revision, Time: r.Time,
	}
	if r.Helm != nil {
		found.Release, found.Number, found.Time = new(r.Helm.Marks()), r.Helm.Revision, r.Helm.LastDeployed
	}
	return found
}

// NextAction is the next revision's action. It installs until one is deployed, so that hooks run.
func NextAction(previous *Record, next *helmrelease.Release) hooks.Action {
	switch {
	case next != nil && next.Adopted:
		return hooks.ActionUpgrade // another client installed it
	case next == nil:
		return previous.nextOfTemplates()
	case previous == nil || previous.Helm == nil:
	case previous.Helm.Name != next.Name || previous.Helm.Namespace != next.Namespace:
	case previous.Action == hooks.ActionInstall && !previous.IsDeployed():
	case previous.Action == "" && previous.State == StateIntent && previous.From == "":
	default:
		return hooks.ActionUpgrade
	}
	return hooks.ActionInstall
}

// nextOfTemplates is NextAction of a revision without a Helm release.
func (r *Record) nextOfTemplates() hooks.Action {
	if r.wasWhole() {
		return hooks.ActionUpgrade
	}
	return hooks.ActionInstall
}

// wasWhole says whether this revision, or an earlier one, was applied completely, with the hooks of its installation.
func (r *Record) wasWhole() bool {
	switch {
	case r == nil:
		return false
	case r.Action == "": // it has no hooks
		return r.IsApplied() || r.From != "" || r.PreviousAddon != ""
	case r.Action == hooks.ActionInstall:
		isOver := r.Helm != nil && r.From != "" && !r.IsApplied() // a go-template version preceded the release
		return isOver || r.IsApplied() && !r.HasHooks(r.Action.Post())
	}
	return true
}
