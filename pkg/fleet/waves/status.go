package waves

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/conditions"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
)

// WriteTimeout limits one write: it has an answer before another process can acquire the lease.
const WriteTimeout = 5 * time.Second

// Shown is the input for the status of a copy.
type Shown struct {
	Generation           int64
	Catalogues, Revision string
	StartedAt            time.Time
	// Reason and Message of condition Ready.
	Reason, Message string
	// DeletionBlocked is the reason why a copy with a deletion timestamp stays in effect; usually empty.
	DeletionBlocked string
	// Before are the conditions of the last status.
	Before []metav1.Condition
}

// StatusOf is the status of a copy, by the last decision over its clusters: at most 64 KiB as JSON.
func StatusOf(shown Shown, tally *rollout.Tally, strategy rollout.Strategy, decision rollout.Decision) *v1.AddonSetStatus {
	status := &v1.AddonSetStatus{
		ObservedGeneration: shown.Generation, Catalogues: shown.Catalogues, Revision: shown.Revision,
		Groups: tally.GroupStatuses(strategy, decision), Clusters: tally.Troubled(strategy),
		Conditions: append([]metav1.Condition(nil), shown.Before...),
	}
	if !shown.StartedAt.IsZero() {
		at := metav1.NewTime(shown.StartedAt)
		status.StartedAt = &at
	}
	counts := tally.Counts()
	status.Counts = &counts
	status.Pending, status.PendingCount = tally.Pending()
	say := conditions.False
	if shown.Reason == v1.ReasonComplete || shown.Reason == v1.ReasonNoClusterSelected { // other seeds may have the clusters
		say = conditions.True
	}
	say(&status.Conditions, shown.Generation, v1.ConditionReady, shown.Reason, text.Message(shown.Message))
	meta.RemoveStatusCondition(&status.Conditions, v1.ConditionDeletionBlocked)
	if shown.DeletionBlocked != "" {
		conditions.True(&status.Conditions, shown.Generation, v1.ConditionDeletionBlocked, v1.ReasonNotConfirmed, shown.DeletionBlocked)
	}
	rollout.Shrink(status)
	return status
}

// Refused is the status of a copy that is not rolled out, with only condition Ready changed, and whether it differs
// from the present status.
func Refused(of *v1.AddonSet, why string) (wanted *v1.AddonSetStatus, isNew bool) {
	wanted = of.Status.DeepCopy()
	wanted.ObservedGeneration = of.Generation
	conditions.False(&wanted.Conditions, of.Generation, v1.ConditionReady, v1.ReasonInvalid, text.Message(why))
	rollout.Shrink(wanted)
	return wanted, !equality.Semantic.DeepEqual(&of.Status, wanted)
}

// CheckRevision asks past the cache whether a copy has the known revision, before another one begins. Result live is
// the copy if it has another; the error is the reason why none begins.
func CheckRevision(ctx context.Context, server client.Reader, of *v1.AddonSet, known string) (live *v1.AddonSet, err error) {
	ctx, cancel := context.WithTimeout(ctx, WriteTimeout)
	defer cancel()
	found := &v1.AddonSet{}
	if err := server.Get(ctx, client.ObjectKeyFromObject(of), found); err != nil {
		return nil, fmt.Errorf("getting AddonSet %q, before a revision begins: %w", of.Name, err)
	}
	switch {
	case found.UID != of.UID || found.Generation != of.Generation:
		return nil, fmt.Errorf("AddonSet %q differs from the cache: no revision begins", of.Name)
	case found.Status.Revision != known:
		return found, fmt.Errorf("AddonSet %q has revision %q, which the cache does not have yet", of.Name, found.Status.Revision)
	}
	return nil, nil
}

// WriteStatus replaces the whole status of a copy: it has no other writer than this field owner.
func WriteStatus(ctx context.Context, writer client.Client, owner string, of *v1.AddonSet, wanted *v1.AddonSetStatus) error {
	ctx, cancel := context.WithTimeout(ctx, WriteTimeout)
	defer cancel()
	encoded, err := json.Marshal(map[string]any{
		"apiVersion": v1.GroupVersion.String(), "kind": "AddonSet",
		"metadata": map[string]any{"namespace": of.Namespace, "name": of.Name, "uid": of.UID},
		"status":   wanted,
	})
	if err != nil {
		return err
	}
	object := &v1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name}}
	err = writer.Status().Patch(ctx, object, client.RawPatch(types.ApplyPatchType, encoded), client.FieldOwner(owner), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("writing the status of AddonSet %q: %w", of.Name, err)
	}
	return nil
}

// Announce reports the changes of a status as events.
func Announce(recorder events.EventRecorder, of *v1.AddonSet, before, after *v1.AddonSetStatus) {
	was, is := ReasonIn(before), ReasonIn(after)
	if is == v1.ReasonPaused { // nothing moves, with any open groups
		return
	}
	were := map[string]v1.GroupState{}
	if before.Revision == after.Revision && was != v1.ReasonPaused {
		for _, group := range before.Groups {
			were[group.Name] = group.State
		}
	}
	for _, group := range after.Groups {
		if group.State == v1.GroupOpen && were[group.Name] != v1.GroupOpen {
			ReportEvent(recorder, of, v1.EventGroupOpened, "clusters of group %q move to revision %s", group.Name, after.Revision)
		}
	}
	switch is {
	case was:
	case v1.ReasonHalted:
		recorder.Eventf(of, nil, corev1.EventTypeWarning, v1.EventHalted, "RollOut", "%s", messageIn(after))
	case v1.ReasonComplete, v1.ReasonBlocked:
		ReportEvent(recorder, of, v1.EventCompleted, "%s", rollout.CompletedMessage(after.Revision, messageIn(after)))
	}
}

// ReportEvent reports an event on a copy.
func ReportEvent(recorder events.EventRecorder, of *v1.AddonSet, reason, format string, arguments ...any) {
	recorder.Eventf(of, nil, corev1.EventTypeNormal, reason, "RollOut", format, arguments...)
}

// Begins reports that a revision begins to roll, unless the set is paused.
func Begins(recorder events.EventRecorder, of *v1.AddonSet, revision string) {
	if !of.Spec.Paused {
		ReportEvent(recorder, of, v1.EventRolloutStarted, "revision %s begins to roll out", revision)
	}
}

func messageIn(status *v1.AddonSetStatus) string {
	return meta.FindStatusCondition(status.Conditions, v1.ConditionReady).Message
}

// ReasonIn is the reason of condition Ready in a status; empty if it has none.
func ReasonIn(status *v1.AddonSetStatus) string {
	if ready := meta.FindStatusCondition(status.Conditions, v1.ConditionReady); ready != nil {
		return ready.Reason
	}
	return ""
}
