package addoninstallation

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/conditions"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/text"
)

// telling is what an event is about.
type telling struct{ kind, reason, action string }

// quicklyApplied is how many objects are written in so little time that their rollout need not be announced.
const quicklyApplied = 30

// announceRollout has the status show a long rollout before it begins, once for each edit: else nothing is told of the edit until
// the rollout waits for something or is through. Left is how many objects are to be written.
func announceRollout(f *facts, left int) loop.Outcome {
	generation := f.installation.Generation
	isTold := f.memory.told == generation || f.installation.Status.ObservedGeneration == generation
	if isTold || left <= quicklyApplied {
		return nil
	}
	f.memory.told = generation // also where the status can't be written
	return checkpoint(kubermaticv1.ConditionApplied, fmt.Sprintf("%d of %d objects are about to be written", left, len(f.objects)))
}

// announce tells changes as events; conditions tell the state.
func (r *Reconciler) announce(ctx context.Context, f *facts) {
	if f.left != "" {
		r.tell(ctx, f, telling{corev1.EventTypeNormal, kubermaticv1.EventLeft, "Resolve"}, f.left)
	}
	if f.withdrawn != "" {
		r.tell(ctx, f, telling{corev1.EventTypeWarning, kubermaticv1.EventWithdrawn, "Resolve"}, f.withdrawn)
	}
	if record := f.record(); f.applied && record.Rollback != nil {
		r.tell(ctx, f, telling{corev1.EventTypeWarning, kubermaticv1.EventRolledBack, "RollBack"}, givenUpText(record))
	} else if f.applied {
		r.tell(ctx, f, telling{corev1.EventTypeNormal, kubermaticv1.EventApplied, "Apply"}, fmt.Sprintf("applied %s %s: %s, %d written",
			f.installation.Spec.AddonRef.Name, f.record().Version, objectCount(len(f.record().Inventory)), f.progress.Written))
	}
	if len(f.misbehaved) > 0 {
		r.tell(ctx, f, telling{corev1.EventTypeWarning, kubermaticv1.ReasonClusterMisbehaves, "Apply"}, noteText(f.misbehaved))
	}
	if len(f.shared) > 0 {
		r.tell(ctx, f, telling{corev1.EventTypeNormal, kubermaticv1.EventShared, "Apply"}, listed(f.shared))
	}
	if len(f.repaired) > 0 {
		r.tell(ctx, f, telling{corev1.EventTypeNormal, kubermaticv1.EventRepaired, "Repair"}, repairedText(f.repaired))
	}
}

// tellTrouble tells, once it is in the status, why an installation is not ready, and when it is ready again. What was applied since
// makes old trouble new: nobody who reads the events is to take what was applied for what works.
func (r *Reconciler) tellTrouble(ctx context.Context, f *facts) {
	if f.applied {
		f.memory.trouble = conditions.Told{}
	}
	ready, isNews := f.memory.trouble.News(f.installation.Status.Conditions)
	switch {
	case !isNews:
	case ready.Reason == kubermaticv1.ReasonReady:
		r.tell(ctx, f, telling{corev1.EventTypeNormal, ready.Reason, "Reconcile"}, ready.Message)
	case ready.Reason == kubermaticv1.ReasonRolledBack && f.applied, ready.Reason == kubermaticv1.ReasonWithdrawn && f.withdrawn != "":
		// announce told it in the same words
	default:
		r.tell(ctx, f, telling{corev1.EventTypeWarning, ready.Reason, "Reconcile"}, ready.Message)
	}
}

// tell says something about an installation in an event, and in the log in the same words.
func (r *Reconciler) tell(ctx context.Context, f *facts, what telling, shown string) {
	shown = text.Message(shown)
	ctrl.LoggerFrom(ctx).Info("told of an installation", "reason", what.reason, "message", shown)
	r.Recorder.Eventf(f.installation, nil, what.kind, what.reason, what.action, "%s", shown)
}

// troubleOf is what was told of an installation before this process began: what its status says, and that a hook failed where its next
// attempt is under way.
func troubleOf(installation *kubermaticv1.AddonInstallation) conditions.Told {
	list := installation.Status.Conditions
	_, ready := conditions.StandingOf(list)
	if ready == nil || ready.Reason != kubermaticv1.ReasonHookRunning || installation.Status.Failures == 0 {
		return conditions.ToldOf(list)
	}
	failed := *ready
	failed.Reason = kubermaticv1.ReasonHookFailed
	return conditions.ToldOf([]metav1.Condition{failed})
}
