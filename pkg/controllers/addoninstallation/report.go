package addoninstallation

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/conditions"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/install/installer"
)

// occasion is the subject of an event.
type occasion struct{ kind, reason, action string }

// quicklyApplied is the number of objects up to which a rollout is too short to be announced.
const quicklyApplied = 30

// mostTaken bounds the events of one reconciliation about owners of removed fields.
const mostTaken = 20

// announceRollout shows a long rollout in the status before it begins, once for each edit. Otherwise the status would
// not show the edit until the rollout waits or ends. Left is the number of objects to write.
func announceRollout(f *facts, left int) *loop.Outcome {
	generation := f.installation.Generation
	isAnnounced := f.memory.announced == generation || f.installation.Status.ObservedGeneration == generation
	if isAnnounced || left <= quicklyApplied {
		return nil
	}
	f.memory.announced = generation // even if the status can't be written
	return checkpoint(kubermaticv1.ConditionApplied, fmt.Sprintf("%d of %d objects are about to be written", left, len(f.run.Objects)))
}

// reportChanges reports the reconciliation's changes as events; conditions show the state.
func (r *Reconciler) reportChanges(ctx context.Context, f *facts) {
	report := func(about occasion, shown string) { r.report(ctx, f, about, shown) }
	if f.left != "" {
		report(occasion{corev1.EventTypeNormal, kubermaticv1.EventLeft, "Resolve"}, f.left)
	}
	if f.withdrawn != "" {
		report(occasion{corev1.EventTypeWarning, kubermaticv1.EventWithdrawn, "Resolve"}, f.withdrawn)
	}
	record := cmp.Or(f.run.Record(), f.run.Applied) // after a failed save the record has to be read again
	switch {
	case f.run.Applied == nil:
	case record.Rollback != nil:
		report(occasion{corev1.EventTypeWarning, kubermaticv1.EventRolledBack, "RollBack"}, givenUpText(record))
	default:
		report(occasion{corev1.EventTypeNormal, kubermaticv1.EventApplied, "Apply"}, fmt.Sprintf("applied %s %s: %s, %d written",
			f.installation.Spec.AddonRef.Name, record.Version, text.Count(len(record.Inventory), "object"), f.run.Progress.Written))
	}
	if len(f.run.Misbehaved) > 0 {
		report(occasion{corev1.EventTypeWarning, kubermaticv1.ReasonClusterMisbehaves, "Apply"}, installer.TextOf(f.run.Misbehaved))
	}
	for _, note := range f.run.Taken[:min(len(f.run.Taken), mostTaken)] {
		report(occasion{corev1.EventTypeWarning, kubermaticv1.EventFieldsTaken, "Apply"}, note.Message)
	}
	if len(f.run.Shared) > 0 {
		report(occasion{corev1.EventTypeNormal, kubermaticv1.EventShared, "Apply"},
			andMore(f.run.Shared[0], " (and %d more)", len(f.run.Shared)-1))
	}
	if len(f.run.Repaired) > 0 {
		report(occasion{corev1.EventTypeNormal, kubermaticv1.EventRepaired, "Repair"}, repairedText(f.run.Repaired))
	}
}

// reportReady reports, after the status is written, that an update is available, why an installation is not ready, and when it is ready
// again. It reports the reason again after an apply, so that readers of events do not take the applied version for a healthy one.
func (r *Reconciler) reportReady(ctx context.Context, f *facts) {
	if f.update != "" {
		r.report(ctx, f, occasion{corev1.EventTypeNormal, kubermaticv1.EventUpdateAvailable, "Resolve"},
			fmt.Sprintf("version %s of add-on %s is available; the installation requests %s", f.update,
				f.installation.Spec.AddonRef.Name, f.selected.target))
	}
	if f.run.Applied != nil {
		f.memory.reported = conditions.Reported{}
	}
	ready, isNews := f.memory.reported.Update(f.installation.Status.Conditions)
	switch {
	case !isNews:
	case ready.Reason == kubermaticv1.ReasonReady:
		r.report(ctx, f, occasion{corev1.EventTypeNormal, ready.Reason, "Reconcile"}, ready.Message)
	case ready.Reason == kubermaticv1.ReasonRolledBack && f.run.Applied != nil,
		ready.Reason == kubermaticv1.ReasonWithdrawn && f.withdrawn != "":
		// reportChanges already reported the same message
	default:
		r.report(ctx, f, occasion{corev1.EventTypeWarning, ready.Reason, "Reconcile"}, ready.Message)
	}
}

// report emits an event about an installation, and logs the same message.
func (r *Reconciler) report(ctx context.Context, f *facts, about occasion, shown string) {
	shown = f.hides().Text(text.Message(shown))
	ctrl.LoggerFrom(ctx).Info("event of an installation", "type", about.kind, "reason", about.reason, "message", shown)
	r.Recorder.Eventf(f.installation, nil, about.kind, about.reason, about.action, "%s", shown)
}

// reportedOf is the last report before this process began: the message in the status, and that a hook failed if its
// next attempt is under way.
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
