package addonset

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/conditions"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/text"
)

// shown is the status that was written last, and when.
type shown struct {
	status v1.AddonSetStatus
	at     time.Time
}

// report writes the status where it differs, at most once in a while, and reports what changed.
func (r *Reconciler) report(ctx context.Context, f *setFacts) loop.Outcome {
	r.mutex.Lock()
	if !f.running.counted {
		r.mutex.Unlock()
		return loop.Done{}
	}
	wanted := statusOf(f)
	before := f.running.shown
	r.mutex.Unlock()
	if equality.Semantic.DeepEqual(before.status, *wanted) {
		return loop.Done{Recheck: f.next}
	}
	if wait := r.Options.StatusInterval - r.Clock.Now().Sub(before.at); wait > 0 {
		return loop.Done{Recheck: wait}
	}
	if err := r.writeStatus(ctx, f, wanted); err != nil {
		return failed(err)
	}
	r.announce(f, &before.status, wanted)
	return loop.Done{Recheck: f.next}
}

// statusOf a set. The mutex is held.
func statusOf(f *setFacts) *v1.AddonSetStatus {
	run := f.running
	status := &v1.AddonSetStatus{
		ObservedGeneration: f.copy.Generation, Catalogues: dependencies(run.set, run.offers), Revision: run.revision,
		Groups: run.tally.GroupStatuses(run.moves(), run.decision), Clusters: run.tally.Troubled(),
	}
	if !run.startedAt.IsZero() {
		at := metav1.NewTime(run.startedAt)
		status.StartedAt = &at
	}
	counts := run.tally.Counts()
	status.Counts = &counts
	status.Pending, status.PendingCount = run.tally.Pending()
	status.Removal = run.guard.Pending.DeepCopy()
	status.Conditions = conditionsOf(f)
	return status
}

// conditionsOf a set: Ready, and DeletionBlocked while it is being deleted and may not go.
func conditionsOf(f *setFacts) []metav1.Condition {
	run := f.running
	result := slices.Clone(run.shown.status.Conditions)
	reason, message := readyOf(f)
	if reason == v1.ReasonComplete {
		conditions.True(&result, f.copy.Generation, v1.ConditionReady, reason, text.Message(message))
	} else {
		conditions.False(&result, f.copy.Generation, v1.ConditionReady, reason, text.Message(message))
	}
	if !f.copy.DeletionTimestamp.IsZero() && !run.deleting {
		conditions.True(&result, f.copy.Generation, v1.ConditionDeletionBlocked, v1.ReasonNotConfirmed, fmt.Sprintf(
			"the set is being deleted without annotation %s: %s: it lives on", v1.AnnotationConfirmDeletion, f.name))
	} else {
		meta.RemoveStatusCondition(&result, v1.ConditionDeletionBlocked)
	}
	return result
}

// readyOf a set, the worst finding first.
func readyOf(f *setFacts) (reason, message string) {
	run := f.running
	decided := run.decision
	switch {
	case run.deleting:
		return v1.ReasonRemoving, fmt.Sprintf("what the set made is being removed: %s left", text.Count(len(run.clusters), "cluster"))
	case run.paused:
		return v1.ReasonPaused, "nothing is written; pending tells what would be"
	case f.gateProblem != nil && decided.Reason != v1.ReasonComplete:
		return v1.ReasonHalted, f.gateProblem.Error()
	case decided.Reason == v1.ReasonComplete && len(run.guard.Waiting) > 0:
		return v1.ReasonRemovalNeedsApproval, fmt.Sprintf("%s wait for annotation %s",
			text.Count(len(run.guard.Waiting), "removal"), v1.AnnotationRemovalApproved)
	}
	return decided.Reason, decided.Message
}

// refuse a set that can't be read: nothing of it changes, and what it was before goes on no
// further.
func (r *Reconciler) refuse(ctx context.Context, f *setFacts, why error) loop.Outcome {
	r.forget(f.name)
	r.read(f.name, true)
	wanted := f.copy.Status.DeepCopy()
	wanted.ObservedGeneration = f.copy.Generation
	conditions.False(&wanted.Conditions, f.copy.Generation, v1.ConditionReady, v1.ReasonInvalid, text.Message(why.Error()))
	if equality.Semantic.DeepEqual(&f.copy.Status, wanted) {
		return loop.Done{}
	}
	if err := r.patchStatus(ctx, f.copy, wanted); err != nil {
		return failed(err)
	}
	return loop.Done{}
}

// writeStatus and keep what was written.
func (r *Reconciler) writeStatus(ctx context.Context, f *setFacts, wanted *v1.AddonSetStatus) error {
	if err := r.patchStatus(ctx, f.copy, wanted); err != nil {
		return err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	f.running.shown = shown{*wanted, r.Clock.Now()}
	return nil
}

// patchStatus replaces the whole status: it has no other writer.
func (r *Reconciler) patchStatus(ctx context.Context, of *v1.AddonSet, wanted *v1.AddonSetStatus) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	encoded, err := encodeStatus(of, wanted)
	if err != nil {
		return err
	}
	object := &v1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name}}
	err = r.Client.Status().Patch(ctx, object, client.RawPatch(types.ApplyPatchType, encoded),
		client.FieldOwner(fieldOwner), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("writing the status of AddonSet %q: %w", of.Name, err)
	}
	return nil
}

// announce what is new in a status.
func (r *Reconciler) announce(f *setFacts, before, after *v1.AddonSetStatus) {
	were := map[string]v1.GroupState{}
	if before.Revision == after.Revision {
		for _, group := range before.Groups {
			were[group.Name] = group.State
		}
	}
	for _, group := range after.Groups {
		if group.State == v1.GroupOpen && were[group.Name] != v1.GroupOpen {
			r.tell(f, v1.EventGroupOpened, "clusters of group %q move to revision %s", group.Name, after.Revision)
		}
	}
	was, is := reasonIn(before), reasonIn(after)
	switch is {
	case was:
	case v1.ReasonHalted:
		r.Recorder.Eventf(f.copy, nil, corev1.EventTypeWarning, v1.EventHalted, "RollOut", "%s",
			meta.FindStatusCondition(after.Conditions, v1.ConditionReady).Message)
	case v1.ReasonComplete:
		r.tell(f, v1.EventCompleted, "revision %s is everywhere", after.Revision)
	}
}

func reasonIn(status *v1.AddonSetStatus) string {
	if ready := meta.FindStatusCondition(status.Conditions, v1.ConditionReady); ready != nil {
		return ready.Reason
	}
	return ""
}

// tell reports an event on the copy.
func (r *Reconciler) tell(f *setFacts, reason, format string, arguments ...any) {
	r.Recorder.Eventf(f.copy, nil, corev1.EventTypeNormal, reason, "RollOut", format, arguments...)
}

// encodeStatus for server-side apply.
func encodeStatus(of *v1.AddonSet, wanted *v1.AddonSetStatus) ([]byte, error) {
	return json.Marshal(map[string]any{
		"apiVersion": v1.GroupVersion.String(), "kind": "AddonSet",
		"metadata": map[string]any{"namespace": of.Namespace, "name": of.Name, "uid": of.UID},
		"status":   wanted,
	})
}
