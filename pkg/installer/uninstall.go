package installer

import (
	"context"
	"fmt"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/helmrelease"
	"github.com/trellis-addons/trellis/pkg/hooks"
)

// deletesWithHooks says whether hooks of an event of the removal are still to be run.
func (p *Pass) deletesWithHooks(event string) bool {
	return !p.Asked.SkipHooks && p.Record().HasDeletionHooks(event)
}

// PreDelete ends what still runs, shows the Helm release as uninstalling and runs the hooks that
// come before the removal.
func (p *Pass) PreDelete(ctx context.Context) *Stop {
	waiting, err := hooks.Runner{Target: p.target()}.Stop(ctx, p.Record().HooksRevision(), p.Asked.SkipHooks)
	switch {
	case err != nil:
		return p.remoteFailed(AboutAll, err)
	case waiting != "":
		return &Stop{
			About: AboutAll, Reason: v1.ReasonRemoving, Message: waiting, Recheck: removalRecheck,
		}
	}
	isOver := func(hook *hooks.Hook) bool {
		return p.Asked.SkipHooks || !slices.Contains(hook.Events, hooks.ActionDelete.Pre())
	}
	if outcome := p.clear(ctx, isOver, AboutAll, v1.ReasonRemoving); outcome != nil {
		return outcome
	}
	if outcome := p.followByHandLast(ctx); outcome != nil {
		return outcome
	}
	p.copyUninstalling(ctx)
	return p.deletionHooks(ctx, hooks.ActionDelete.Pre())
}

// PostDelete runs the hooks that come after the removal, in namespaces that still stand.
func (p *Pass) PostDelete(ctx context.Context) *Stop {
	return p.deletionHooks(ctx, hooks.ActionDelete.Post())
}

func (p *Pass) deletionHooks(ctx context.Context, event string) *Stop {
	if !p.deletesWithHooks(event) {
		return nil
	}
	if stop := p.copyForDeletionHooks(ctx); stop != nil {
		return stop
	}
	waiting := p.advanceHooks(ctx, event)
	if waiting == nil || waiting.Kind != Waiting {
		return waiting
	}
	waiting.About = AboutAll
	if waiting.Reason == v1.ReasonHookFailed {
		waiting.Reason = v1.ReasonRemovalBlocked
		waiting.Message += fmt.Sprintf("; annotation %s: \"true\" removes without hooks", v1.AnnotationSkipHooks)
		return waiting
	}
	waiting.Reason = v1.ReasonRemoving
	return waiting
}

// copyIsUninstalling is what is known of the copy of a release that goes.
const copyIsUninstalling = "uninstalling"

// copyUninstalling has `helm list` show that the release goes. Nothing depends on it.
func (p *Pass) copyUninstalling(ctx context.Context) {
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
