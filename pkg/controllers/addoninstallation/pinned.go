package addoninstallation

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/conditions"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/resolution"
	"github.com/trellis-addons/trellis/pkg/revision"
)

// pinFacts are about content that the catalogue, or a source, has no more (ADR 59).
type pinFacts struct {
	// onRecord is what is wanted, where only the record has it; nil elsewhere.
	onRecord *revision.Wanted
	// pinned is what condition Compatible says of that, moved what Fetched says of an artifact that
	// is another one under the same reference; "" where there is nothing to be said.
	pinned, moved string
}

// findOnRecord is for a version that was refused. If the record has the content that
// addonRef.digest names, the next step goes on with that; else the pass ends.
func (f *facts) findOnRecord(request resolution.Request, entry *catalogue.Entry, refusal catalogue.Refusal) loop.Outcome {
	record := f.pass.Record()
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

// pinned takes the rest of the pass over where only the record has the content that is meant:
// nothing is fetched or rendered.
func (r *Reconciler) pinned(ctx context.Context, f *facts) loop.Outcome {
	if f.pinned == "" {
		return nil
	}
	f.pass.RenewRollout()
	f.decide(ctx, f.onRecord)
	switch f.pass.Decision.Do {
	case revision.Hold:
		return r.run(ctx, f, hold)
	case revision.Finish:
		return r.run(ctx, f, finish)
	}
	f.pinned = ""
	if f.valuesGone != nil {
		return f.valuesGone
	}
	return f.incompatible(kubermaticv1.ReasonContentGone, fmt.Sprintf("version %q of add-on %q has other content in the catalogue than "+
		"addonRef.digest names, and that was not applied to its end: set the digest to that of today, or choose another version",
		f.onRecord.Version, f.onRecord.Addon))
}

// finished is the outcome of a pass that found the version withdrawn, and carried its rollout on.
// What is installed then is another thing to the next pass, which comes at once.
func finished(f *facts, outcome, kept loop.Outcome) loop.Outcome {
	if f.pass.Applied != nil {
		kept = loop.Checkpoint{AtOnce: true}
	}
	return earlier(outcome, kept)
}

// artifactGone says of an installation with addonRef.digest that its source has something else
// under the same reference, as where a tag was pushed again, and nobody asked for that: what is on record
// stays, until the installation is changed or annotation reconcile-at is.
func (r *Reconciler) artifactGone(f *facts) (revision.Gone, error) {
	digest, record := f.installation.Spec.AddonRef.Digest, f.pass.Record()
	if digest == "" {
		return "", nil
	}
	asked := f.pass.Asked.ReconcileAt
	if record == nil || record.Artifact.Digest == f.snapshot.Digest {
		f.memory.movedFor = asked // the source was asked, and has what is on record
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
	f.moved = fmt.Sprintf("the source has %s under the same reference now, and %s is applied: it is taken with the next change of the "+
		"installation, or of annotation %s", artifactText(f.snapshot.Revision, f.snapshot.Digest),
		artifactText(record.Artifact.Revision, record.Artifact.Digest), kubermaticv1.AnnotationReconcileAt)
	return revision.GoneArtifact, nil
}

func artifactText(revision, digest string) string { return fmt.Sprintf("%q (%s)", revision, digest) }

// isOfContent are the conditions of which nothing is known where only the record has the content.
func isOfContent(condition string) bool {
	return condition == kubermaticv1.ConditionValuesResolved || condition == kubermaticv1.ConditionFetched ||
		condition == kubermaticv1.ConditionRendered
}

// stays says whether a condition that was earned before is left as it is: of content that only the
// record has, nothing was looked at.
func (f *facts) stays(condition string) bool {
	return f.pinned != "" && isOfContent(condition) && meta.IsStatusConditionTrue(f.installation.Status.Conditions, condition)
}

// waitingChange is what Ready says of a change that waits, since the installation is pinned; "" for none.
func waitingChange(said []metav1.Condition) string {
	for _, one := range said {
		if one.Reason == kubermaticv1.ReasonPinned || one.Reason == kubermaticv1.ReasonArtifactMoved {
			return "; a change waits: see condition " + one.Type
		}
	}
	return ""
}

// projectFinished says that a rollout is through which the pass carried on although it found no
// version to be had.
func projectFinished(f *facts) {
	if f.pass.Decision.Do == revision.Finish && f.pass.Applied != nil {
		installation := f.installation
		conditions.True(&installation.Status.Conditions, installation.Generation, kubermaticv1.ConditionApplied,
			kubermaticv1.ReasonApplied, sharedText(f.pass.Record()))
	}
}
