package addoninstallation

import (
	"cmp"
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/backoff"
	"github.com/trellis-addons/trellis/pkg/hooks"
	order "github.com/trellis-addons/trellis/pkg/installation"
	"github.com/trellis-addons/trellis/pkg/installer"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/revision"
)

// What a pass does is decided three times, by one function (revision.Decide): before anything is
// rendered, once it is rendered, and where what is wanted can't be had. The steps in between go by
// that decision alone.

// compare decides by what objects depend on.
func (r *Reconciler) compare(ctx context.Context, f *facts) loop.Outcome {
	inputs, err := r.renderer.Inputs(r.request(f))
	if err != nil {
		return r.notRendered(f, err)
	}
	f.inputs = inputs
	f.pass.RenewRollout()
	wanted := wantedOf(f)
	if wanted.Gone, err = r.artifactGone(f); err != nil {
		return failed(err)
	}
	f.decide(ctx, wanted)
	if f.pass.Decision.Do == revision.Once {
		f.offerUpdate()
	}
	switch f.pass.Decision.Amend {
	case revision.AmendName, revision.AmendContent:
		return amendName(ctx, f)
	case revision.AmendEnd:
		return outcomeOf(f.pass.Amend(ctx, func(kept *revision.Record) { kept.OnClusterDeletion = wanted.OnClusterDeletion }))
	}
	return nil
}

// compareRendered decides by the objects, and puts on record what needs no new revision.
func compareRendered(ctx context.Context, f *facts, made *revision.Record) loop.Outcome {
	wanted := wantedOf(f)
	wanted.Rendered = &revision.Rendered{
		ObjectsDigest: made.ObjectsDigest, Hooks: f.pass.Hooks, Helm: made.Helm, Adopts: f.pass.Foreign != nil,
	}
	f.decide(ctx, wanted)
	switch {
	case f.pass.Decision.Amend != revision.AmendInputs:
		return nil
	case f.pass.Decision.Do == revision.Keep:
		return amendInputs(ctx, &f.pass, made)
	}
	// an intent that has the same objects: its rollout goes on
	return outcomeOf(f.pass.Amend(ctx, func(kept *revision.Record) {
		kept.Inputs, kept.Wanted, kept.PlatformValues = made.Inputs, made.Wanted, made.PlatformValues
		kept.OnClusterDeletion, kept.Health, kept.Hub = made.OnClusterDeletion, made.Health, kept.Ask(made.Access)
	}))
}

// decide decides; wanted is nil where it can't be had.
func (f *facts) decide(ctx context.Context, wanted *revision.Wanted) {
	f.pass.Decision = revision.Decide(f.pass.Record(), wanted, revision.Seen{
		Once:        f.pass.Asked.Once,
		ReconcileAt: f.pass.Asked.ReconcileAt, Anew: f.memory.renderedFor != f.pass.Asked.ReconcileAt,
		Rollout: f.pass.IsRollingOut(), Watched: f.pass.State.Watched, Now: f.pass.Now,
	})
	ctrl.LoggerFrom(ctx).V(1).Info("decided what to do", "decision", f.pass.Decision.String())
}

func wantedOf(f *facts) *revision.Wanted {
	return &revision.Wanted{
		Addon: addonOf(f.installation), Version: f.choice.Version.Version, Content: f.installation.Spec.AddonRef.Digest,
		Inputs: f.inputs.Hash, Asked: f.inputs.Wanted, OnClusterDeletion: onClusterDeletion(f.choice.Version.Template),
	}
}

// offerUpdate says that what strategy Once leaves alone is not what would be chosen today.
func (f *facts) offerUpdate() {
	installed := f.pass.Record().Version
	if f.choice.Version.Version != installed {
		f.selected.availableUpdate = cmp.Or(f.selected.availableUpdate, f.choice.Version.Version)
	}
	f.selected.target = installed
}

// amendName puts on record that what is installed has another name now: that of an add-on's version
// with the same content, which it says too. The user cluster isn't asked.
func amendName(ctx context.Context, f *facts) loop.Outcome {
	return outcomeOf(f.pass.Amend(ctx, func(kept *revision.Record) {
		kept.Version, kept.Content, kept.Origins = f.choice.Version.Version, f.choice.Origin.Content, f.values.Origins
		kept.OnClusterDeletion = onClusterDeletion(f.choice.Version.Template)
		if addon := addonOf(f.installation); kept.Addon != addon {
			kept.Addon, kept.FormerAddon = addon, kept.Addon
		}
	}))
}

// amendInputs puts new inputs on record that give the objects which the user cluster has already:
// nothing is written there.
func amendInputs(ctx context.Context, pass *installer.Pass, made *revision.Record) loop.Outcome {
	return outcomeOf(pass.Amend(ctx, func(kept *revision.Record) {
		kept.Inputs, kept.Wanted, kept.Version, kept.EntryDigest = made.Inputs, made.Wanted, made.Version, made.EntryDigest
		kept.Content, kept.Artifact, kept.CRDs, kept.Timeout = made.Content, made.Artifact, made.CRDs, made.Timeout
		kept.Values, kept.Origins, kept.PlatformValues = made.Values, made.Origins, made.PlatformValues
		kept.Hooks = hooks.CarryRuns(kept.Hooks, pass.Hooks) // those of tests may be others
		kept.HooksState.FailedAt = metav1.Time{}             // with new inputs, what failed is tried at once
		kept.Atomic, kept.Rollback = made.Atomic, nil
		kept.OnClusterDeletion, kept.Health, kept.Hub = made.OnClusterDeletion, made.Health, kept.Ask(made.Access)
	}))
}

// beforeApply are the conditions whose failure leaves the user cluster as it is.
var beforeApply = map[string]bool{
	kubermaticv1.ConditionCompatible:     true,
	kubermaticv1.ConditionValuesResolved: true,
	kubermaticv1.ConditionFetched:        true,
	kubermaticv1.ConditionRendered:       true,
}

// maintain keeps what is installed as it was applied when an edit can't be followed: the pass ended
// before anything changed, so the record still says what the cluster should have. A rollback goes
// on, or begins for a revision that can't be applied any further, and an intent of a version that
// was withdrawn is finished: none needs what the pass could not get.
func (r *Reconciler) maintain(ctx context.Context, f *facts, outcome loop.Outcome) loop.Outcome {
	said := verdictOf(outcome)
	// Credentials have an end, so they are renewed while spec.paused; the status tells who has some.
	if said.reason == kubermaticv1.ReasonPaused && !f.cluster.Paused && len(f.installation.Status.Access) > 0 {
		return earlier(outcome, r.run(ctx, f, renew))
	}
	isEnded := beforeApply[said.condition] || isAccessAwaited(f, said) || isBeyondShare(said)
	if !isEnded && !order.IsHeld(said.reason) && said.reason != kubermaticv1.ReasonAnnotationInvalid {
		return outcome
	}
	f.decide(ctx, f.onRecord)
	switch f.pass.Decision.Do {
	case revision.Keep:
		return earlier(outcome, r.run(ctx, f, maintain))
	case revision.GiveWay:
		return earlier(outcome, outcomeOf(f.pass.GiveWay(ctx, &installer.Stop{
			Message: "it was not applied in time: " + said.message, Cause: said.cause, Recheck: installer.RefusedRecheck,
		})))
	case revision.GoBack:
		return earlier(outcome, r.run(ctx, f, finish))
	case revision.Finish:
		return finished(f, outcome, r.run(ctx, f, finish))
	}
	return outcome
}

// isBeyondShare says whether a reconciliation ended since the cluster, or its namespace, has used up its share.
func isBeyondShare(said verdict) bool {
	return said.condition == kubermaticv1.ConditionReady && said.reason == kubermaticv1.ReasonLimitExceeded
}

// earlier is the outcome, with a recheck no later than the maintenance asks for.
func earlier(outcome, kept loop.Outcome) loop.Outcome {
	recheck := loop.RequeueAfter(kept)
	if recheck == 0 {
		return outcome
	}
	switch o := outcome.(type) {
	case loop.Waiting:
		o.Recheck = backoff.Sooner(o.Recheck, recheck)
		return o
	case loop.Stalled:
		o.Recheck = backoff.Sooner(o.Recheck, recheck)
		return o
	}
	return outcome
}

// asGivenUp turns the outcome of an installation that was rolled back: everything may be well with
// what is there, and it is not what was asked for.
func asGivenUp(f *facts, outcome loop.Outcome) loop.Outcome {
	if f.pass.Decision.Do != revision.GivenUp && f.pass.Decision.Do != revision.GoBack || !f.pass.Record().IsComplete() {
		return outcome
	}
	message := givenUpText(f.pass.Record())
	switch o := outcome.(type) {
	case loop.Done:
	case loop.Waiting:
		if o.Condition != kubermaticv1.ConditionHealthy && o.Condition != kubermaticv1.ConditionApplied {
			return outcome
		}
		message += "; now " + o.Message
	default:
		return outcome
	}
	return loop.Stalled{
		Condition: kubermaticv1.ConditionApplied, Reason: kubermaticv1.ReasonRolledBack, Message: message,
		Cause: f.pass.Record().Rollback.Cause, Recheck: loop.RequeueAfter(outcome),
	}
}

func givenUpText(record *revision.Record) string {
	change := fmt.Sprintf("upgrade to version %q failed; rolled back to version %q", record.Rollback.Version, record.Version)
	if record.Rollback.Version == record.Version {
		change = fmt.Sprintf("a change within version %q (its values, or what its catalogue or source says) failed; "+
			"rolled back to what was there before", record.Version)
	}
	return fmt.Sprintf("%s: choose another version, mend the values, or set annotation %s to try once more; it failed: %s",
		change, kubermaticv1.AnnotationReconcileAt, record.Rollback.Problem)
}

// onClusterDeletion is what a record has of it: nothing for what is the default.
func onClusterDeletion(template *kubermaticv1.Template) kubermaticv1.OnClusterDeletion {
	if template.OnClusterDeletion == kubermaticv1.ClusterDeletionLetGo {
		return ""
	}
	return template.OnClusterDeletion
}

// defaultTimeout is how long objects may take to become healthy where the catalogue doesn't say.
const defaultTimeout = 10 * time.Minute

// releaseName of the Helm release; empty for go-template.
func releaseName(f *facts) string { return f.choice.ReleaseName(f.installation) }

func timeoutOf(template *kubermaticv1.Template) metav1.Duration {
	if template.Timeout != nil {
		return *template.Timeout
	}
	return metav1.Duration{Duration: defaultTimeout}
}
