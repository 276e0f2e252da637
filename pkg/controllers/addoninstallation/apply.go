package addoninstallation

import (
	"context"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/revision"
)

// recordIntent puts on record what will be applied before any of it is.
func (r *Reconciler) recordIntent(ctx context.Context, f *facts) loop.Outcome {
	if f.Decision.IsRecorded() {
		return nil
	}
	wanted := r.wantedRecord(f)
	if outcome := r.compareRendered(ctx, f, wanted); outcome != nil || f.Decision.Do != revision.Begin {
		return outcome
	}
	return outcomeOf(f.Begin(ctx, wanted, f.choice.Leaves))
}

// wantedRecord is what the catalogue and the values come to, in the words of a record.
func (r *Reconciler) wantedRecord(f *facts) revision.Record {
	return revision.Record{
		Addon: addonOf(f), Version: f.choice.Version.Version, EntryDigest: f.choice.Origin.Digest, Core: f.choice.Core,
		Method: f.choice.Version.Template.Method, Artifact: kubermaticv1.Artifact{Revision: f.snapshot.Revision, Digest: f.snapshot.Digest},
		Inputs: f.inputs, Wanted: f.wanted, ObjectsDigest: apply.ObjectsDigest(f.Objects), CRDs: crdPolicy(f), Timeout: timeoutOf(f),
		Values: f.values.Merged, Origins: f.values.Origins,
		From: installedVersion(f), Atomic: f.choice.Version.Template.Atomic, Helm: helmRecord(f),
	}
}

// apply takes the rollout as far as it goes now; a long one is announced first.
func (r *Reconciler) apply(ctx context.Context, f *facts) loop.Outcome {
	if f.Decision.IsApplied() {
		return nil
	}
	if outcome := announceRollout(f, f.Left()); outcome != nil {
		return outcome
	}
	return outcomeOf(f.Advance(ctx))
}
