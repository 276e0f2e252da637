package installer

import (
	"context"
	"fmt"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/install/helmrelease"
	"github.com/trellis-addons/trellis/pkg/install/hooks"
)

// deletesWithHooks says whether hooks of an event of the removal still have to run.
func (p *Run) deletesWithHooks(event string) bool {
	return !p.Asked.SkipHooks && p.Record().HasDeletionHooks(event)
}

// PreDelete ends running hooks, shows the Helm release as uninstalling and runs the hooks before the removal.
func (p *Run) PreDelete(ctx context.Context) *loop.Outcome {
	waiting, err := hooks.Runner{Target: p.target()}.Stop(ctx, p.Record().HooksRevision(), p.Asked.SkipHooks)
	switch {
	case err != nil:
		return p.remoteFailed(v1.ConditionReady, err)
	case waiting != "":
		return waitToRemove(waiting)
	}
	isOver := func(hook *hooks.Hook) bool {
		return p.Asked.SkipHooks || !slices.Contains(hook.Events, hooks.ActionDelete.Pre())
	}
	if outcome := p.clear(ctx, isOver, v1.ConditionReady, v1.ReasonRemoving); outcome != nil {
		return outcome
	}
	if outcome := p.followByHandLast(ctx); outcome != nil {
		return outcome
	}
	p.copyUninstalling(ctx)
	return p.deletionHooks(ctx, hooks.ActionDelete.Pre())
}

// PostDelete runs the hooks after the removal, in namespaces that still exist.
func (p *Run) PostDelete(ctx context.Context) *loop.Outcome {
	return p.deletionHooks(ctx, hooks.ActionDelete.Post())
}

func (p *Run) deletionHooks(ctx context.Context, event string) *loop.Outcome {
	if !p.deletesWithHooks(event) {
		return nil
	}
	if stop := p.copyForDeletionHooks(ctx); stop != nil {
		return stop
	}
	waiting := p.advanceHooks(ctx, event)
	if !waiting.Is(loop.Waiting) {
		return waiting
	}
	waiting.Condition = v1.ConditionReady
	if waiting.Reason == v1.ReasonHookFailed {
		waiting.Reason = v1.ReasonRemovalBlocked
		waiting.Message += fmt.Sprintf("; annotation %s: \"true\" removes without hooks", v1.AnnotationSkipHooks)
		return waiting
	}
	waiting.Reason = v1.ReasonRemoving
	return waiting
}

// copyIsUninstalling is the known state of the copy of a release that is being removed.
const copyIsUninstalling = "uninstalling"

// copyUninstalling makes `helm list` show that the release is being removed. Nothing depends on it.
func (p *Run) copyUninstalling(ctx context.Context) {
	record := p.Record()
	if record.Helm == nil || p.State.helmWritten == copyIsUninstalling {
		return
	}
	p.State.helmWritten = copyIsUninstalling
	record, err := p.ReadWhole(ctx, record)
	if err == nil {
		_, err = helmrelease.Write(ctx, p.Connection.Secrets.Secrets(record.Helm.Namespace), record.Uninstalling(), false)
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("the Helm release could not be shown as uninstalling", "problem", calls.Said(err))
	}
}
