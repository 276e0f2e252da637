package addoninstallation

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/conditions"
	"github.com/trellis-addons/trellis/pkg/installer"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/text"
)

// occasion is what an event is about.
type occasion struct{ kind, reason, action string }

// quicklyApplied is how many objects are written in so little time that their rollout need not be
// announced.
const quicklyApplied = 30

// mostTaken bounds the events of one reconciliation about owners of removed fields.
const mostTaken = 20

// announceRollout has the status show a long rollout before it begins, once for each edit: else
// nothing is said of the edit until the rollout waits for something or is through. Left is how many
// objects are to be written.
func announceRollout(f *facts, left int) loop.Outcome {
	generation := f.installation.Generation
	isAnnounced := f.memory.announced == generation || f.installation.Status.ObservedGeneration == generation
	if isAnnounced || left <= quicklyApplied {
		return nil
	}
	f.memory.announced = generation // also where the status can't be written
	return checkpoint(kubermaticv1.ConditionApplied, fmt.Sprintf("%d of %d objects are about to be written", left, len(f.pass.Objects)))
}

// reportChanges reports what the pass changed as events; conditions say how things are.
func (r *Reconciler) reportChanges(ctx context.Context, f *facts) {
	report := func(about occasion, shown string) { r.report(ctx, f, about, shown) }
	if f.left != "" {
		report(occasion{corev1.EventTypeNormal, kubermaticv1.EventLeft, "Resolve"}, f.left)
	}
	if f.withdrawn != "" {
		report(occasion{corev1.EventTypeWarning, kubermaticv1.EventWithdrawn, "Resolve"}, f.withdrawn)
	}
	record := cmp.Or(f.pass.Record(), f.pass.Applied) // where a save failed since, the record is to be read again
	switch {
	case f.pass.Applied == nil:
	case record.Rollback != nil:
		report(occasion{corev1.EventTypeWarning, kubermaticv1.EventRolledBack, "RollBack"}, givenUpText(record))
	default:
		report(occasion{corev1.EventTypeNormal, kubermaticv1.EventApplied, "Apply"}, fmt.Sprintf("applied %s %s: %s, %d written",
			f.installation.Spec.AddonRef.Name, record.Version, text.Count(len(record.Inventory), "object"), f.pass.Progress.Written))
	}
	if len(f.pass.Misbehaved) > 0 {
		report(occasion{corev1.EventTypeWarning, kubermaticv1.ReasonClusterMisbehaves, "Apply"}, installer.TextOf(f.pass.Misbehaved))
	}
	for _, note := range f.pass.Taken[:min(len(f.pass.Taken), mostTaken)] {
		report(occasion{corev1.EventTypeWarning, kubermaticv1.EventFieldsTaken, "Apply"}, note.Message)
	}
	if len(f.pass.Shared) > 0 {
		report(occasion{corev1.EventTypeNormal, kubermaticv1.EventShared, "Apply"},
			andMore(f.pass.Shared[0], " (and %d more)", len(f.pass.Shared)-1))
	}
	if len(f.pass.Repaired) > 0 {
		report(occasion{corev1.EventTypeNormal, kubermaticv1.EventRepaired, "Repair"}, repairedText(f.pass.Repaired))
	}
}

// reportReady reports, once it is in the status, why an installation is not ready, and when it is
// ready again; once more where something was applied since: nobody who reads the events is to take
// what was applied for what works.
func (r *Reconciler) reportReady(ctx context.Context, f *facts) {
	if f.pass.Applied != nil {
		f.memory.reported = conditions.Reported{}
	}
	ready, isNews := f.memory.reported.Update(f.installation.Status.Conditions)
	switch {
	case !isNews:
	case ready.Reason == kubermaticv1.ReasonReady:
		r.report(ctx, f, occasion{corev1.EventTypeNormal, ready.Reason, "Reconcile"}, ready.Message)
	case ready.Reason == kubermaticv1.ReasonRolledBack && f.pass.Applied != nil,
		ready.Reason == kubermaticv1.ReasonWithdrawn && f.withdrawn != "":
		// reportChanges said it in the same words
	default:
		r.report(ctx, f, occasion{corev1.EventTypeWarning, ready.Reason, "Reconcile"}, ready.Message)
	}
}

// report says something about an installation in an event, and in the log in the same words.
func (r *Reconciler) report(ctx context.Context, f *facts, about occasion, shown string) {
	shown = f.hides().Text(text.Message(shown))
	ctrl.LoggerFrom(ctx).Info("event of an installation", "type", about.kind, "reason", about.reason, "message", shown)
	r.Recorder.Eventf(f.installation, nil, about.kind, about.reason, about.action, "%s", shown)
}

// reportedOf is what was reported of an installation before this process began: what its status
// says, and that a hook failed where its next attempt is under way.
func reportedOf(installation *kubermaticv1.AddonInstallation) conditions.Reported {
	list := installation.Status.Conditions
	_, ready := conditions.StateOf(list)
	if ready == nil || ready.Reason != kubermaticv1.ReasonHookRunning || installation.Status.Failures == 0 {
		return conditions.ReportedIn(list)
	}
	failed := *ready
	failed.Reason = kubermaticv1.ReasonHookFailed
	return conditions.ReportedIn([]metav1.Condition{failed})
}
