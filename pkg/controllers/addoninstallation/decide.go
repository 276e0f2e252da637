package addoninstallation

import (
	"cmp"
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/hooks"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/revision"
)

// What a pass does is decided three times, by one function (revision.Decide): before anything is
// rendered, once it is rendered, and where what is wanted can't be had (maintain.go). The steps in
// between go by that decision alone.

// compare decides by what objects depend on.
func (r *Reconciler) compare(ctx context.Context, f *facts) loop.Outcome {
	if err := r.hashInputs(f); err != nil {
		return failed(err)
	}
	f.RenewRollout()
	f.decide(ctx, wantedOf(f))
	if f.Decision.Do == revision.Once {
		f.offerUpdate()
	}
	if f.Decision.Amend == revision.AmendName {
		return r.amendName(ctx, f)
	}
	return nil
}

// compareRendered decides by the objects, and puts on record what needs no new revision.
func (r *Reconciler) compareRendered(ctx context.Context, f *facts, made revision.Record) loop.Outcome {
	wanted := wantedOf(f)
	wanted.Rendered = &revision.Rendered{
		ObjectsDigest: made.ObjectsDigest, Hooks: f.Hooks, Helm: made.Helm, Adopts: f.Foreign != nil,
	}
	f.decide(ctx, wanted)
	switch {
	case f.Decision.Amend != revision.AmendInputs:
		return nil
	case f.Decision.Do == revision.Keep:
		return r.amendInputs(ctx, f)
	}
	return r.amendIntent(ctx, f)
}

// decide decides; wanted is nil where it can't be had.
func (f *facts) decide(ctx context.Context, wanted *revision.Wanted) {
	f.Decision = revision.Decide(f.Record(), wanted, revision.Seen{
		Once:        f.installation.Spec.ReconcileStrategy == kubermaticv1.ReconcileOnce,
		ReconcileAt: f.installation.Annotations[kubermaticv1.AnnotationReconcileAt], Anew: isAskedAnew(f),
		Rollout: f.IsRolling(), Watched: f.memory.Watched, Now: f.Now,
	})
	ctrl.LoggerFrom(ctx).V(1).Info("decided what to do", "decision", f.Decision.String())
}

func wantedOf(f *facts) *revision.Wanted {
	return &revision.Wanted{Addon: addonOf(f), Version: f.choice.Version.Version, Inputs: f.inputs, Asked: f.wanted}
}

// offerUpdate says that what strategy Once leaves alone is not what would be chosen today.
func (f *facts) offerUpdate() {
	installed := f.Record().Version
	if f.choice.Version.Version != installed {
		f.selected.availableUpdate = cmp.Or(f.selected.availableUpdate, f.choice.Version.Version)
	}
	f.selected.target = installed
}

// amendName puts on record that what is installed has another name now: that of an add-on's version
// with the same content. The user cluster isn't asked.
func (r *Reconciler) amendName(ctx context.Context, f *facts) loop.Outcome {
	return outcomeOf(f.Amend(ctx, func(kept *revision.Record) {
		kept.Version, kept.Origins = f.choice.Version.Version, f.values.Origins
		if addon := addonOf(f); kept.Addon != addon {
			kept.Addon, kept.FormerAddon = addon, kept.Addon
		}
	}))
}

// amendInputs puts new inputs on record that give the objects which the user cluster has already:
// nothing is written there.
func (r *Reconciler) amendInputs(ctx context.Context, f *facts) loop.Outcome {
	return outcomeOf(f.Amend(ctx, func(kept *revision.Record) {
		kept.Inputs, kept.Wanted, kept.Version, kept.EntryDigest = f.inputs, f.wanted, f.choice.Version.Version, f.choice.Origin.Digest
		kept.Artifact = kubermaticv1.Artifact{Revision: f.snapshot.Revision, Digest: f.snapshot.Digest}
		kept.CRDs, kept.Timeout = crdPolicy(f), timeoutOf(f)
		kept.Values, kept.Origins = f.values.Merged, f.values.Origins
		kept.Hooks = hooks.CarryRuns(kept.Hooks, f.Hooks) // those of tests may be others
		kept.HooksState.FailedAt = metav1.Time{}          // with new inputs, what failed is tried at once
		kept.Atomic, kept.Rollback = f.choice.Version.Template.Atomic, nil
	}))
}

// amendIntent puts new inputs on record for an intent that has the same objects; its rollout goes
// on.
func (r *Reconciler) amendIntent(ctx context.Context, f *facts) loop.Outcome {
	return outcomeOf(f.Amend(ctx, func(kept *revision.Record) { kept.Inputs, kept.Wanted = f.inputs, f.wanted }))
}
