package addoninstallation

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/helmrelease"
	"github.com/trellis-addons/trellis/pkg/hooks"
	"github.com/trellis-addons/trellis/pkg/loop"
)

// deletesWithHooks says whether hooks of an event of the removal are still to be run. A release that never came to its end
// has none: what they work on is not there.
func (f *facts) deletesWithHooks(event string) bool {
	record := f.record()
	skipped := f.installation.Annotations[kubermaticv1.AnnotationSkipHooks] == "true"
	begun := !record.IsApplied() && record.Action == hooks.ActionInstall
	return record.Helm != nil && !skipped && !begun && record.HasHooks(event)
}

// preDelete ends what still runs, shows the Helm release as uninstalling and runs the hooks that come before the removal.
func (r *Reconciler) preDelete(ctx context.Context, f *facts) loop.Outcome {
	waiting, err := hooks.Runner{Target: f.target()}.Stop(ctx, f.record().HooksRevision())
	switch {
	case err != nil:
		return r.remoteFailed(f, kubermaticv1.ConditionReady, err)
	case waiting != "":
		return loop.Waiting{
			Condition: kubermaticv1.ConditionReady, Reason: kubermaticv1.ReasonRemoving, Message: waiting, Recheck: removalRecheck,
		}
	}
	if outcome := r.takeBackLast(ctx, f); outcome != nil {
		return outcome
	}
	r.copyUninstalling(ctx, f)
	return r.deletionHooks(ctx, f, hooks.ActionDelete.Pre())
}

// postDelete runs the hooks that come after the removal, in namespaces that still stand.
func (r *Reconciler) postDelete(ctx context.Context, f *facts) loop.Outcome {
	return r.deletionHooks(ctx, f, hooks.ActionDelete.Post())
}

func (r *Reconciler) deletionHooks(ctx context.Context, f *facts, event string) loop.Outcome {
	if !f.deletesWithHooks(event) {
		return nil
	}
	outcome := r.advanceHooks(ctx, f, event)
	waiting, ok := outcome.(loop.Waiting)
	if !ok {
		return outcome
	}
	waiting.Condition = kubermaticv1.ConditionReady
	if waiting.Reason == kubermaticv1.ReasonHookFailed {
		waiting.Reason = kubermaticv1.ReasonRemovalBlocked
		waiting.Message += fmt.Sprintf("; annotation %s: \"true\" removes without hooks", kubermaticv1.AnnotationSkipHooks)
		return waiting
	}
	waiting.Reason = kubermaticv1.ReasonRemoving
	return waiting
}

// copyGoes is what is known of the copy of a release that goes.
const copyGoes = "uninstalling"

// copyUninstalling has `helm list` show that the release goes. Nothing depends on it.
func (r *Reconciler) copyUninstalling(ctx context.Context, f *facts) {
	record := f.record()
	if record.Helm == nil || f.memory.helmWritten == copyGoes {
		return
	}
	f.memory.helmWritten = copyGoes
	record, err := r.readWhole(ctx, f, record)
	if err == nil {
		_, err = helmrelease.Write(ctx, f.connection.Secrets.Secrets(record.Helm.Namespace), record.Uninstalling(), false)
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("the Helm release could not be shown as uninstalling", "error", err.Error())
	}
}
