package installer

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/install/hooks"
)

// slowestHookRecheck is the longest wait between two reads of a running hook.
const slowestHookRecheck = 5 * time.Second

// PostHooks runs the hooks after the writes. They do not wait for health, as with `helm install`; for an atomic version
// they do, as with `helm install --atomic`.
func (p *Run) PostHooks(ctx context.Context) *loop.Outcome {
	if p.Record().Atomic {
		return nil
	}
	return p.runHooks(ctx, p.Record().Action.Post())
}

// LastHooks does the same for atomic versions.
func (p *Run) LastHooks(ctx context.Context) *loop.Outcome {
	if outcome := p.runHooks(ctx, p.Record().Action.Post()); outcome != nil {
		return p.GiveWay(ctx, outcome)
	}
	return p.recordHealth(ctx, p.Health) // an atomic revision is proven healthy only now
}

// runHooks continues the hooks of an event; nil if all of them succeeded.
func (p *Run) runHooks(ctx context.Context, event string) *loop.Outcome {
	if p.Record().Action == "" || !p.Record().HasHooks(event) {
		return nil
	}
	p.copyHelm(ctx)
	outcome := p.advanceHooks(ctx, event)
	if p.State.Loaded { // otherwise the state on the seed is unknown
		p.copyHelm(ctx)
	}
	return outcome
}

// advanceHooks runs hooks as far as possible without waiting.
func (p *Run) advanceHooks(ctx context.Context, event string) *loop.Outcome {
	record := p.Record()
	var unsaved error
	runner := hooks.Runner{
		Target: p.target(), Timeout: record.Timeout.Duration, Now: p.Now, Adopt: p.Asked.Adopt,
		AskedFor: p.Asked.ReconcileAt,
		Save: func(ctx context.Context) error {
			p.State.hookRuns = 0
			whole, err := p.ReadWhole(ctx, record)
			switch {
			case err == nil:
				err = p.save(ctx, whole) // in any state of the record
			case p.Asked.IsRemoved() && errors.Is(err, errGone): // known objects are removed anyway
				err = nil
			}
			unsaved = err
			return err
		},
		Skipped: func(message string) {
			p.report(Event{Reason: v1.EventHookSkipped, Action: "RunHook"}, "%s", message)
		},
	}
	progress, err := runner.Run(ctx, record.HooksRevision(), event)
	switch {
	case unsaved != nil:
		return p.recordUnknown(unsaved)
	case err != nil:
		return p.remoteFailed(v1.ConditionApplied, err)
	case progress.Done:
		return nil
	case progress.Failed != "":
		return p.hookFailed(progress, event)
	}
	p.State.hookRuns++
	return loop.Wait(v1.ConditionApplied, v1.ReasonHookRunning, progress.Waiting, min(stageWait(p.State.hookRuns), slowestHookRecheck))
}

// hookFailed reports a failed attempt. Hooks of a removal are on record: an edit of the add-on does not change them.
func (p *Run) hookFailed(progress hooks.Progress, event string) *loop.Outcome {
	p.HookAttempts, p.HookRetry = int32(progress.Attempt), progress.Retry
	again := "the add-on, its values or annotation " + v1.AnnotationReconcileAt + " change"
	if event == hooks.ActionDelete.Pre() || event == hooks.ActionDelete.Post() {
		again = "annotation " + v1.AnnotationReconcileAt + " changes; it runs as it is in the installed revision"
	}
	return &loop.Outcome{
		Kind: loop.Waiting, Condition: v1.ConditionApplied, Reason: v1.ReasonHookFailed, Cause: progress.Cause,
		Message: fmt.Sprintf("%s; attempt %d, tried again at %s, or once %s", progress.Failed, progress.Attempt,
			progress.Retry.UTC().Format(time.RFC3339), again),
		Recheck: max(progress.Retry.Sub(p.Now), time.Second),
	}
}

// clearHooks deletes leftovers of the present revision's go-template hooks, except for hooks that the next revision has
// too, which replace them.
func (p *Run) clearHooks(ctx context.Context, next []hooks.Hook) *loop.Outcome {
	record := p.Record()
	if record == nil {
		return nil
	}
	stays := map[string]bool{}
	for i := range next {
		stays[next[i].Path] = true
	}
	return p.clear(ctx, func(hook *hooks.Hook) bool { return !stays[hook.Path] }, v1.ConditionApplied, v1.ReasonHookRunning)
}

func (p *Run) clear(ctx context.Context, goes func(hook *hooks.Hook) bool, condition, reason string) *loop.Outcome {
	waiting, err := hooks.Runner{Target: p.target()}.Clear(ctx, p.Record().HooksRevision(), goes)
	switch {
	case err != nil:
		return p.remoteFailed(condition, err)
	case waiting != "":
		return loop.Wait(condition, reason, waiting, removalRecheck)
	}
	return nil
}
