package installer

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/hooks"
)

// slowestHookRecheck is the longest wait between two reads of a hook that runs.
const slowestHookRecheck = 5 * time.Second

// PostHooks runs the hooks that follow the writes. They don't wait for health, as with `helm
// install`; where the version is atomic they do, as with `helm install --atomic`.
func (p *Pass) PostHooks(ctx context.Context) *Stop {
	if p.Record().Atomic {
		return nil
	}
	return p.runHooks(ctx, p.Record().Action.Post())
}

// LastHooks are the same for atomic versions.
func (p *Pass) LastHooks(ctx context.Context) *Stop {
	if outcome := p.runHooks(ctx, p.Record().Action.Post()); outcome != nil {
		return p.GiveWay(ctx, outcome)
	}
	return p.recordHealth(ctx, p.Health) // an atomic revision proved itself only now
}

// runHooks continues the hooks of an event; nil where all of them did their work.
func (p *Pass) runHooks(ctx context.Context, event string) *Stop {
	if p.Record().Action == "" || !p.Record().HasHooks(event) {
		return nil
	}
	p.copyHelm(ctx)
	outcome := p.advanceHooks(ctx, event)
	if p.State.Loaded { // else nobody knows what the seed has
		p.copyHelm(ctx)
	}
	return outcome
}

// advanceHooks runs hooks as far as they go without waiting.
func (p *Pass) advanceHooks(ctx context.Context, event string) *Stop {
	record := p.Record()
	var unsaved error
	runner := hooks.Runner{
		Target: p.target(), Timeout: record.Timeout.Duration, Now: p.Now, Adopt: p.Asked.Adopt,
		AskedFor: p.Asked.ReconcileAt,
		Save: func(ctx context.Context) error {
			p.State.hookPasses = 0
			whole, err := p.ReadWhole(ctx, record)
			switch {
			case err == nil:
				err = p.save(ctx, whole) // in whichever state the record is
			case p.Asked.IsRemoved() && errors.Is(err, errGone): // what is known is removed all the same
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
		return p.doubted(unsaved)
	case err != nil:
		return p.remoteFailed(AboutApply, err)
	case progress.Done:
		return nil
	case progress.Failed != "":
		return p.hookFailed(progress, event)
	}
	p.State.hookPasses++
	return &Stop{
		About: AboutApply, Reason: v1.ReasonHookRunning, Message: progress.Waiting,
		Recheck: min(stageWait(p.State.hookPasses), slowestHookRecheck),
	}
}

// hookFailed reports a failed attempt. What runs before and after a removal stands on record: an
// edit of the add-on changes nothing there.
func (p *Pass) hookFailed(progress hooks.Progress, event string) *Stop {
	p.HookAttempts, p.HookRetry = int32(progress.Attempt), progress.Retry
	again := "the add-on, its values or annotation " + v1.AnnotationReconcileAt + " change"
	if event == hooks.ActionDelete.Pre() || event == hooks.ActionDelete.Post() {
		again = "annotation " + v1.AnnotationReconcileAt + " changes; it runs as it was installed"
	}
	return &Stop{
		About: AboutApply, Reason: v1.ReasonHookFailed, Cause: progress.Cause,
		Message: fmt.Sprintf("%s; attempt %d, tried again at %s, or once %s", progress.Failed, progress.Attempt,
			progress.Retry.UTC().Format(time.RFC3339), again),
		Recheck: max(progress.Retry.Sub(p.Now), time.Second),
	}
}

// clearHooks deletes what hooks of the present revision left of go-template, but for those that the
// next one has too: these take their places.
func (p *Pass) clearHooks(ctx context.Context, next []hooks.Hook) *Stop {
	record := p.Record()
	if record == nil {
		return nil
	}
	stays := map[string]bool{}
	for i := range next {
		stays[next[i].Path] = true
	}
	return p.clear(ctx, func(hook *hooks.Hook) bool { return !stays[hook.Path] }, AboutApply, v1.ReasonHookRunning)
}

func (p *Pass) clear(ctx context.Context, goes func(hook *hooks.Hook) bool, about About, reason string) *Stop {
	waiting, err := hooks.Runner{Target: p.target()}.Clear(ctx, p.Record().HooksRevision(), goes)
	switch {
	case err != nil:
		return p.remoteFailed(about, err)
	case waiting != "":
		return &Stop{About: about, Reason: reason, Message: waiting, Recheck: removalRecheck}
	}
	return nil
}
