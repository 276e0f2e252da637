package addoninstallation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/backoff"
	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/hooks"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/removal"
	"github.com/trellis-addons/trellis/pkg/revision"
)

const (
	// stageRecheck is the wait before namespaces and CRDs that are waited for are looked at again; it grows by half each time,
	// up to slowestLook.
	stageRecheck = 150 * time.Millisecond
	// refusedRecheck is how often objects that the user cluster refused are tried again.
	refusedRecheck = time.Minute
	// maxLooks is more than any back-off counts.
	maxLooks = 1 << 10
)

// recordIntent puts on record what will be applied before any of it is.
func (r *Reconciler) recordIntent(ctx context.Context, f *facts) loop.Outcome {
	if f.decision.IsRecorded() {
		return nil
	}
	digest := apply.ObjectsDigest(f.objects)
	if outcome := r.compareRendered(ctx, f, digest); outcome != nil || f.decision.Do != revision.Begin {
		return outcome
	}
	intent, err := r.intent(f, digest)
	if err != nil {
		return failed(err)
	}
	if intent.LastGood, err = r.lastGood(ctx, f); err != nil {
		return r.remoteFailed(f, kubermaticv1.ConditionApplied, err)
	}
	if err := r.Records.SaveIntent(ctx, f.installation.Namespace, intent); err != nil {
		f.memory.doubt()
		return failed(err)
	}
	f.memory.begin(intent)
	f.claimName(intent.Helm)
	r.tellTakeOver(f, f.foreign, f.leftovers)
	return nil
}

func (r *Reconciler) intent(f *facts, digest string) (*revision.Record, error) {
	objects, err := encodeObjects(f.objects)
	if err != nil {
		return nil, err
	}
	intent := &revision.Record{
		Format: revision.Format, Revision: f.record().Next(), State: revision.StateIntent,
		Installation: f.installation.Name, ClusterName: f.cluster.Name, ClusterUID: f.cluster.UID,
		Addon: addonOf(f), Version: f.choice.Version.Version, EntryDigest: f.choice.Origin.Digest, Core: f.choice.Core,
		Method: f.choice.Version.Template.Method, Artifact: kubermaticv1.Artifact{Revision: f.snapshot.Revision, Digest: f.snapshot.Digest},
		Inputs: f.inputs, Wanted: f.wanted, ObjectsDigest: digest, TargetNamespace: f.installation.Spec.TargetNamespace,
		CRDs: crdPolicy(f), Timeout: timeoutOf(f), Objects: objects, Values: f.values.Merged, Origins: f.values.Origins, Time: f.stamp(),
	}
	if f.owner.ClusterUID != f.cluster.UID { // it came back over the same user cluster
		intent.Origin = f.owner.ClusterUID
	}
	var known ownership.Inventory
	if previous := f.record(); previous != nil {
		known, intent.Superseded, intent.Settled = previous.Standing(), previous.Superseded, previous.Settled
		intent.Shared, intent.FormerAddon = previous.Shared, previous.FormerAddon
		if previous.Addon != intent.Addon {
			intent.FormerAddon = previous.Addon
		}
	}
	intent.Superseded = append(intent.Superseded, f.leftovers...)
	intent.From, intent.Atomic = installedVersion(f), f.choice.Version.Template.Atomic
	intent.Inventory = apply.Planned(f.objects, known)
	intent.Helm = helmRecord(f)
	intent.Former = formerRelease(f.record(), intent.Helm)
	intent.Hooks, intent.HooksDigest = f.hooks, hooks.Digest(f.hooks)
	intent.Begin(revision.NextAction(f.record(), intent.Helm))
	return intent, nil
}

func encodeObjects(objects []*unstructured.Unstructured) ([]json.RawMessage, error) {
	encoded := make([]json.RawMessage, len(objects))
	for i, object := range objects {
		raw, err := json.Marshal(object.Object)
		if err != nil {
			return nil, fmt.Errorf("encoding %s %q: %w", object.GetKind(), object.GetName(), err)
		}
		encoded[i] = raw
	}
	return encoded, nil
}

// apply takes the rollout as far as it goes now; a long one is announced first.
func (r *Reconciler) apply(ctx context.Context, f *facts) loop.Outcome {
	if f.decision.IsApplied() {
		return nil
	}
	r.beginRollout(f)
	if outcome := announceRollout(f, f.memory.rollout.Left()); outcome != nil {
		return outcome
	}
	return r.rollOut(ctx, f)
}

// beginRollout plans the rollout of the record's objects, unless it is under way.
func (r *Reconciler) beginRollout(f *facts) {
	if f.memory.rollout != nil {
		return
	}
	f.memory.rollout = apply.NewRollout(f.owner, f.objects, f.record().Inventory, apply.RolloutOptions{
		TargetNamespace: f.installation.Spec.TargetNamespace,
		Adopt:           f.adopts(),
		Release:         releaseMarks(f.record()),
		NameOf:          r.namesIn(f.installation.Namespace, f.owner.ClusterUID),
		Namespaces:      r.views.namespacesOf(f.place(), r.Options.DriftInterval),
		Shared:          f.record().Shared,
	})
	f.memory.adopting = f.adopts()
	f.memory.stageLooks, f.memory.stageWritten = 0, 0
}

// rollOut takes the rollout as far as it goes now. A rollout lives from the recorded intent to the record of its end; after
// a restart it begins anew, and what is there already is not written again.
func (r *Reconciler) rollOut(ctx context.Context, f *facts) loop.Outcome {
	r.beginRollout(f)
	f.memory.rollout.Hold(r.preHooks(f))
	f.memory.rollout.ShareWith(r.siblings(f))
	progress, err := f.memory.rollout.Advance(ctx, f.target())
	f.progress, f.misbehaved = progress, progress.Misbehaved
	f.memory.waited(progress.Written)
	if err := r.keepShared(ctx, f); err != nil {
		return failed(err)
	}
	if errors.Is(err, errHandover) {
		return handover()
	}
	if err != nil {
		return r.orRollBack(ctx, f, r.remoteFailed(f, kubermaticv1.ConditionApplied, err))
	}
	if f.held != nil {
		return r.orRollBack(ctx, f, f.held)
	}
	if progress.Complete {
		return nil
	}
	looks := f.memory.stageLooks
	if hasReason(progress.Waiting, kubermaticv1.ReasonNamespaceMissing) {
		f.memory.doubtCluster() // what went with the namespace is made anew
		looks = int(f.memory.refusals) + 1
	}
	f.obstacle = apply.ObstacleOf(slices.Concat(progress.Refused, progress.Waiting))
	return r.orRollBack(ctx, f, unfinished(progress, looks))
}

func hasReason(notes []calls.Note, reason string) bool {
	return slices.ContainsFunc(notes, func(note calls.Note) bool { return note.Reason == reason })
}

// unfinished says what a rollout waits for, or what was refused, after so many looks in a row at which nothing more could be
// written. What is refused is a write each time: it is tried ever more rarely, down to what keeps failing.
func unfinished(progress apply.Progress, looks int) loop.Outcome {
	if len(progress.Refused) > 0 {
		first := progress.Refused[0]
		return loop.Waiting{
			Condition: kubermaticv1.ConditionApplied, Reason: first.Reason, Message: noteText(progress.Refused),
			Recheck: backoff.After(looks, refusedRecheck, slowestRetry),
		}
	}
	wait := stageWait(looks)
	if len(progress.Waiting) == 0 {
		return loop.RetryAt{Condition: kubermaticv1.ConditionApplied, Reason: kubermaticv1.ReasonProgressing, After: wait}
	}
	switch {
	case progress.Waiting[0].Reason != kubermaticv1.ReasonNamespaceMissing:
	case progress.Kept > 0:
		wait = atOnce // it may be ours, and was not written since it was there
	default:
		wait = backoff.After(looks, refusedRecheck, slowestRetry)
	}
	return loop.Waiting{
		Condition: kubermaticv1.ConditionApplied, Reason: progress.Waiting[0].Reason, Message: noteText(progress.Waiting), Recheck: wait,
	}
}

// stageWait is how long to wait after so many looks in a row at which nothing more could be written.
func stageWait(looks int) time.Duration { return backoff.Slowly(looks, stageRecheck, slowestLook) }

// noteText is the first note, and how many more there are.
func noteText(notes []calls.Note) string {
	text := notes[0].Message
	if len(notes) > 1 {
		text += fmt.Sprintf(" (and %d more)", len(notes)-1)
	}
	return text
}

// countEarlier counts the objects that earlier revisions left, of which a prune may take half at once: what the present one
// brings does not count, or an upgrade could drop everything by bringing more.
func countEarlier(intent *revision.Record) int {
	count := len(intent.Superseded) + len(intent.Shared)
	for _, entry := range intent.Inventory {
		if entry.UID != "" {
			count++
		}
	}
	return count
}

// recordApplied puts on record that the rollout is through, with the UID of every object.
func (r *Reconciler) recordApplied(ctx context.Context, f *facts) loop.Outcome {
	if f.decision.IsApplied() {
		return nil
	}
	applied, before := *f.record(), f.record().Inventory
	applied.State, applied.Time = revision.StateApplied, f.stamp()
	applied.SupersededOf = countEarlier(f.record())
	applied.Superseded = append(removal.Prunable(f.record().Inventory, f.progress.Inventory), f.record().Superseded...)
	applied.Superseded = removal.Prunable(applied.Superseded, f.progress.Inventory).Without(applied.Shared)
	applied.Inventory = f.progress.Inventory
	if !applied.HasHooks(applied.Action.Post()) {
		applied.Deployed()
	}
	if err := r.Records.SaveApplied(ctx, f.installation.Namespace, &applied); err != nil {
		f.memory.doubt()
		return failed(err)
	}
	f.memory.record, f.memory.rollout, f.memory.looks = applied.Light(), nil, 0
	f.saved = &applied
	r.surveyAfter(f)
	f.memory.health = nil
	f.memory.repairs = sameContent(f.memory.repairs, before, applied.Inventory)
	f.applied = true
	if applied.Revision <= revision.Kept {
		return nil // revisions count from 1: there are no more than are kept
	}
	if err := r.Records.Trim(ctx, f.installation.Namespace, f.owner, applied.LastGood); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "trimming release records; tried again with the next revision")
	}
	return nil
}

// surveyAfter says when a rollout is followed by a look for drift. Where everything was written, nothing can have drifted yet. Else
// the look comes when it was to come; behind hooks that ran it comes at once, since they may have taken away what the update
// does not write.
func (r *Reconciler) surveyAfter(f *facts) {
	switch {
	case f.progress.Kept == 0:
		f.memory.nextSurvey = f.now.Add(r.Options.DriftInterval)
	case f.record().RanHooks(f.record().Action.Pre()):
		f.memory.nextSurvey, f.memory.surveyAnew = time.Time{}, true
	}
}
