package addoninstallation

import (
	"cmp"
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
	"github.com/trellis-addons/trellis/pkg/install/hooks"
	"github.com/trellis-addons/trellis/pkg/install/installer"
	"github.com/trellis-addons/trellis/pkg/install/revision"
)

// One function, revision.Decide, decides the action of a reconciliation. It is called three times: before rendering,
// after rendering, and if the wanted version is unavailable. The steps in between follow that decision alone.

// compare decides by the inputs.
func (r *Reconciler) compare(ctx context.Context, f *facts) *loop.Outcome {
	inputs, err := r.renderer.Inputs(r.request(f))
	if err != nil {
		return r.notRendered(f, err)
	}
	f.inputs = inputs
	f.run.RenewRollout()
	wanted := wantedOf(f)
	if wanted.Gone, err = r.artifactGone(f); err != nil {
		return failed(err)
	}
	f.decide(ctx, wanted)
	if f.run.Decision.Do == revision.Once {
		f.offerUpdate()
	}
	switch f.run.Decision.Amend {
	case revision.AmendName:
		return amendName(ctx, f)
	case revision.AmendEnd:
		return f.run.Amend(ctx, func(kept *revision.Record) { kept.OnClusterDeletion = wanted.OnClusterDeletion })
	}
	return nil
}

// compareRendered decides by the rendered objects, and records changes that need no new revision.
func compareRendered(ctx context.Context, f *facts, made *revision.Record) *loop.Outcome {
	wanted := wantedOf(f)
	wanted.Rendered = &revision.Rendered{
		ObjectsDigest: made.ObjectsDigest, Hooks: f.run.Hooks, Helm: made.Helm, Adopts: f.run.Foreign != nil,
	}
	f.decide(ctx, wanted)
	switch {
	case f.run.Decision.Amend != revision.AmendInputs:
		return nil
	case f.run.Decision.Do == revision.Keep:
		return amendInputs(ctx, &f.run, made)
	}
	// an intent with the same objects: its rollout continues
	return f.run.Amend(ctx, func(kept *revision.Record) {
		kept.Inputs, kept.Wanted, kept.PlatformValues = made.Inputs, made.Wanted, made.PlatformValues
		kept.OnClusterDeletion, kept.Health, kept.Hub = made.OnClusterDeletion, made.Health, kept.Ask(made.Access)
	})
}

// decide calls revision.Decide; wanted is nil if it is unavailable.
func (f *facts) decide(ctx context.Context, wanted *revision.Wanted) {
	f.run.Decision = revision.Decide(f.run.Record(), wanted, revision.Observed{
		Once:        f.run.Asked.Once,
		ReconcileAt: f.run.Asked.ReconcileAt, Rerender: f.memory.renderedFor != f.run.Asked.ReconcileAt,
		Rollout: f.run.IsRollingOut(), Watched: f.run.State.Watched, Now: f.run.Now,
	})
	ctrl.LoggerFrom(ctx).V(1).Info("decided what to do", "decision", f.run.Decision.String())
}

func wantedOf(f *facts) *revision.Wanted {
	return &revision.Wanted{
		Addon: addonOf(f.installation), Version: f.choice.Version.Version,
		Inputs: f.inputs.Hash, Asked: f.inputs.Wanted, OnClusterDeletion: onClusterDeletion(f.choice.Version.Template),
	}
}

// offerUpdate reports that the version which strategy Once keeps is not the one that would be selected now.
func (f *facts) offerUpdate() {
	installed := f.run.Record().Version
	if f.choice.Version.Version != installed {
		f.selected.availableUpdate = cmp.Or(f.selected.availableUpdate, f.choice.Version.Version)
	}
	f.selected.target = installed
}

// amendName records a new name of the installed version: that of an add-on's version with the same content, which names
// the previous one. The user cluster is not called.
func amendName(ctx context.Context, f *facts) *loop.Outcome {
	return f.run.Amend(ctx, func(kept *revision.Record) {
		kept.Version, kept.Content, kept.Origins = f.choice.Version.Version, f.choice.Origin.Content, f.values.Origins
		kept.OnClusterDeletion = onClusterDeletion(f.choice.Version.Template)
		if addon := addonOf(f.installation); kept.Addon != addon {
			kept.Addon, kept.PreviousAddon = addon, kept.Addon
		}
	})
}

// amendInputs records new inputs that render to the objects which the user cluster already has. Nothing is written
// there.
func amendInputs(ctx context.Context, run *installer.Run, made *revision.Record) *loop.Outcome {
	return run.Amend(ctx, func(kept *revision.Record) {
		kept.Inputs, kept.Wanted, kept.Version, kept.EntryDigest = made.Inputs, made.Wanted, made.Version, made.EntryDigest
		kept.Content, kept.Artifact, kept.CRDs, kept.Timeout = made.Content, made.Artifact, made.CRDs, made.Timeout
		kept.Values, kept.Origins, kept.PlatformValues = made.Values, made.Origins, made.PlatformValues
		kept.Hooks = hooks.CarryRuns(kept.Hooks, run.Hooks) // hooks for tests may differ
		kept.HooksState.FailedAt = metav1.Time{}            // with new inputs, a failed hook is retried at once
		kept.Atomic, kept.Rollback, kept.Images = made.Atomic, nil, made.Images
		kept.OnClusterDeletion, kept.Health, kept.Hub = made.OnClusterDeletion, made.Health, kept.Ask(made.Access)
	})
}

// beforeApply are the conditions whose failure leaves the user cluster unchanged.
var beforeApply = map[string]bool{
	kubermaticv1.ConditionCompatible:     true,
	kubermaticv1.ConditionValuesResolved: true,
	kubermaticv1.ConditionFetched:        true,
	kubermaticv1.ConditionRendered:       true,
}

// maintain keeps the installed objects as they were applied if a change can't be followed: the reconciliation ended
// before anything changed, so the record is still valid. A rollback continues, or begins for a revision that can't be
// applied further. The intent of a withdrawn version is finished. None of this needs the unavailable content.
func (r *Reconciler) maintain(ctx context.Context, f *facts, outcome *loop.Outcome) *loop.Outcome {
	// Credentials expire, so they are renewed while spec.paused; the status says whether there are some.
	if outcome.Reason == kubermaticv1.ReasonPaused && !f.cluster.Paused && len(f.installation.Status.Access) > 0 {
		return earlier(outcome, r.run(ctx, f, renew))
	}
	isEnded := beforeApply[outcome.Condition] || isAccessAwaited(f, outcome) || isBeyondShare(outcome)
	if !isEnded && !installation.IsHeld(outcome.Reason) && outcome.Reason != kubermaticv1.ReasonAnnotationInvalid {
		return outcome
	}
	f.decide(ctx, f.onRecord)
	switch f.run.Decision.Do {
	case revision.Keep:
		return earlier(outcome, r.run(ctx, f, maintain))
	case revision.GiveWay:
		return earlier(outcome, f.run.GiveWay(ctx, &loop.Outcome{
			Kind: loop.Waiting, Message: "the revision was not applied in time: " + outcome.Message, Cause: outcome.Cause,
			Recheck: installer.RefusedRecheck,
		}))
	case revision.GoBack:
		return earlier(outcome, r.run(ctx, f, finish))
	case revision.Finish:
		return finished(f, outcome, r.run(ctx, f, finish))
	}
	return outcome
}

// isBeyondShare says whether a reconciliation ended because the cluster, or its namespace, used up its share.
func isBeyondShare(outcome *loop.Outcome) bool {
	return outcome.Condition == kubermaticv1.ConditionReady && outcome.Reason == kubermaticv1.ReasonLimitExceeded
}

// earlier is the outcome with a recheck no later than that of the maintenance.
func earlier(outcome, kept *loop.Outcome) *loop.Outcome {
	return outcome.Within(loop.RequeueAfter(kept), loop.Waiting, loop.Stalled)
}

// asGivenUp changes the outcome of an installation that was rolled back: the installed objects may be healthy, but they
// are not the requested ones.
func asGivenUp(f *facts, outcome *loop.Outcome) *loop.Outcome {
	if f.run.Decision.Do != revision.GivenUp && f.run.Decision.Do != revision.GoBack || !f.run.Record().IsComplete() {
		return outcome
	}
	message := givenUpText(f.run.Record())
	isNow := outcome.Condition == kubermaticv1.ConditionHealthy || outcome.Condition == kubermaticv1.ConditionApplied
	switch {
	case outcome.Is(loop.Done):
	case outcome.Is(loop.Waiting) && isNow:
		message += "; now " + outcome.Message
	default:
		return outcome
	}
	return &loop.Outcome{
		Kind: loop.Stalled, Condition: kubermaticv1.ConditionApplied, Reason: kubermaticv1.ReasonRolledBack, Message: message,
		Cause: f.run.Record().Rollback.Cause, Recheck: loop.RequeueAfter(outcome),
	}
}

func givenUpText(record *revision.Record) string {
	change := fmt.Sprintf("upgrade to version %q failed; rolled back to version %q", record.Rollback.Version, record.Version)
	if record.Rollback.Version == record.Version {
		change = fmt.Sprintf("a change within version %q (of its values, catalogue entry or source) failed; rolled back to the previous "+
			"revision", record.Version)
	}
	return fmt.Sprintf("%s: choose another version, fix the values, or set annotation %s to try once more; it failed: %s",
		change, kubermaticv1.AnnotationReconcileAt, record.Rollback.Problem)
}

// onClusterDeletion is the value for the record: empty for the default.
func onClusterDeletion(template *kubermaticv1.Template) kubermaticv1.OnClusterDeletion {
	if template.OnClusterDeletion == kubermaticv1.ClusterDeletionLetGo {
		return ""
	}
	return template.OnClusterDeletion
}

// defaultTimeout is the time in which objects have to become healthy if the catalogue sets none.
const defaultTimeout = 10 * time.Minute

// releaseName is the name of the Helm release; empty for go-template.
func releaseName(f *facts) string { return f.choice.ReleaseName(f.installation) }

func timeoutOf(template *kubermaticv1.Template) metav1.Duration {
	if template.Timeout != nil {
		return *template.Timeout
	}
	return metav1.Duration{Duration: defaultTimeout}
}
