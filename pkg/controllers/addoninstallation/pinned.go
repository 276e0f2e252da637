package addoninstallation

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/install/resolution"
	"github.com/trellis-addons/trellis/pkg/install/revision"
)

// pinFacts are about content that the catalogue, or a source, no longer has (ADR 59).
type pinFacts struct {
	// onRecord is the wanted version if only the record has it; otherwise nil.
	onRecord *revision.Wanted
	// pinned is the message for condition Compatible about that. moved is the message for Fetched if the reference now
	// has another artifact. "" without a message.
	pinned, moved string
}

// findOnRecord handles a refused version. If the record has the content that addonRef.digest names, the next step
// continues with it; otherwise the reconciliation ends.
func (f *facts) findOnRecord(request resolution.Request, entry *catalogue.Entry, refusal catalogue.Refusal) *loop.Outcome {
	record := f.run.Record()
	gone := request.OnRecord(record, entry, refusal)
	if gone != "" {
		f.onRecord = &revision.Wanted{Addon: record.Addon, Version: record.Version, Gone: gone}
	}
	if other, ok := errors.AsType[*resolution.ContentGoneError](refusal); ok && gone != "" {
		f.selected.target, f.pinned = other.Version, other.Pinned()
		return nil
	}
	return f.incompatible(refusal.Reason(), refusal.Error())
}

// pinned does the rest of the reconciliation if only the record has the requested content: nothing is fetched or
// rendered.
func (r *Reconciler) pinned(ctx context.Context, f *facts) *loop.Outcome {
	if f.pinned == "" {
		return nil
	}
	f.run.RenewRollout()
	f.decide(ctx, f.onRecord)
	switch f.run.Decision.Do {
	case revision.Hold:
		return r.run(ctx, f, hold)
	case revision.Finish:
		return r.run(ctx, f, finish)
	}
	f.pinned = ""
	if f.valuesGone != nil {
		return f.valuesGone
	}
	return f.incompatible(kubermaticv1.ReasonContentGone, fmt.Sprintf("version %q of add-on %q has content in the catalogue "+
		"that does not match addonRef.digest, and content with that digest was never completely applied: set addonRef.digest to the digest "+
		"in the catalogue, or choose another version",
		f.onRecord.Version, f.onRecord.Addon))
}

// finished is the outcome of a reconciliation that found the version withdrawn and continued its rollout. If the
// rollout is complete, the next reconciliation begins at once, since the installed version changed.
func finished(f *facts, outcome, kept *loop.Outcome) *loop.Outcome {
	if f.run.Applied != nil {
		kept = &loop.Outcome{Kind: loop.Checkpoint, Recheck: loop.AtOnce}
	}
	return earlier(outcome, kept)
}

// artifactGone reports, for an installation with addonRef.digest, that its reference has another artifact, such as
// after a second push of a tag, without a request for it. The recorded content stays until the installation or
// annotation reconcile-at changes.
func (r *Reconciler) artifactGone(f *facts) (revision.Gone, error) {
	digest, record := f.installation.Spec.AddonRef.Digest, f.run.Record()
	if digest == "" {
		return "", nil
	}
	asked := f.run.Asked.ReconcileAt
	if record == nil || record.Artifact.Digest == f.snapshot.Digest {
		f.memory.movedFor = asked // the source was asked, and has the recorded artifact
		return "", nil
	}
	if f.memory.movedFor != asked || record.Content != digest || record.Skipped > 0 ||
		record.Addon != addonOf(f.installation) || record.Version != f.choice.Version.Version {
		return "", nil
	}
	isAsked, err := r.renderer.IsAsked(r.request(f), record)
	if err != nil || !isAsked {
		return "", err
	}
	f.moved = fmt.Sprintf("the source now has %s under the same reference; %s is applied: the new content is applied with the next "+
		"change of the installation, or of annotation %s", artifactText(f.snapshot.Revision, f.snapshot.Digest),
		artifactText(record.Artifact.Revision, record.Artifact.Digest), kubermaticv1.AnnotationReconcileAt)
	return revision.GoneArtifact, nil
}

func artifactText(revision, digest string) string { return fmt.Sprintf("%q (%s)", revision, digest) }

// waitingChange is the part of Ready's message about a change that waits because the installation is pinned; "" if
// there is none.
func waitingChange(said []metav1.Condition) string {
	for _, one := range said {
		if one.Reason == kubermaticv1.ReasonPinned || one.Reason == kubermaticv1.ReasonArtifactMoved {
			return "; a change waits: see condition " + one.Type
		}
	}
	return ""
}
