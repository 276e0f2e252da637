package release

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/ownership"
)

const (
	// firstHookPause is the wait after the first failed attempt at an event; it doubles up to longestHookPause.
	firstHookPause   = 10 * time.Second
	longestHookPause = 5 * time.Minute
)

// HookRunner runs the hooks of one event, one after the other, as far as it goes without waiting.
type HookRunner struct {
	Target calls.Target
	// Timeout is how long one hook may take.
	Timeout time.Duration
	Now     time.Time
	// AskedFor is the value of annotation reconcile-at: another one than the failed attempt's begins the next at once.
	AskedFor string
	// Adopt lets a hook take the place of an object that is not ours.
	Adopt bool
	// Save writes the record; it is called before anything that could not be told from the user cluster afterwards.
	Save func(ctx context.Context) error
	// Skipped is told of each hook of a removal that has nowhere to run any more; it may be nil.
	Skipped func(message string)
}

// HookProgress is how far an event has come.
type HookProgress struct {
	// Done says that every hook of the event did its work, or that there is none.
	Done bool
	// Waiting says what is waited for.
	Waiting string
	// Failed says which hook failed, at which object and why; Attempt is how many attempts failed, Retry when the next begins.
	Failed  string
	Attempt int
	Retry   time.Time
}

// pass is one Run.
type pass struct {
	HookRunner
	record  *Record
	event   string
	changed bool
}

// Run goes on with the hooks of an event of the record's revision. What it finds out is in the record's Hooks and Hooking,
// and in the status of its Helm release. An error is a call that failed and may be tried again at once.
func (h HookRunner) Run(ctx context.Context, record *Record, event string) (HookProgress, error) {
	hooks := record.hooksOf(event)
	state := &record.Hooking
	if len(hooks) == 0 || slices.Contains(state.Ended, event) {
		return HookProgress{Done: true}, nil
	}
	p := &pass{HookRunner: h, record: record, event: event}
	if state.Event != event {
		record.Hooking = Hooking{Event: event, Attempt: 1, AskedFor: h.AskedFor, Ended: state.Ended}
	}
	if state.Failed != "" {
		if err := p.tidyUp(ctx, hooks); err != nil || p.pauses() {
			return p.failure(), err
		}
		p.again(hooks)
	}
	for _, hook := range hooks {
		if hook.ran(event) {
			continue
		}
		waiting, failed, err := p.advance(ctx, hook)
		switch {
		case err != nil:
			return HookProgress{}, err
		case failed != "":
			return p.fail(ctx, hooks, hook, failed)
		case waiting != "":
			return HookProgress{Waiting: waiting}, p.save(ctx)
		}
	}
	return p.finish(ctx, hooks)
}

func (p *pass) save(ctx context.Context) error {
	if !p.changed {
		return nil
	}
	p.changed = false
	return p.Save(ctx)
}

// id tells an attempt from all others. The time tells it from one of the same name before a release was removed.
func (p *pass) id() string {
	helm := p.record.Helm
	return fmt.Sprintf("%s.v%d.%s.%d.%x", helm.Name, helm.Revision, p.event, p.record.Hooking.Attempt, helm.LastDeployed.Unix())
}

// isRollout says whether the event is of the revision's action, and no test or removal.
func (p *pass) isRollout() bool {
	return p.event == p.record.Action.Pre() || p.event == p.record.Action.Post()
}

func (p *pass) isDeletion() bool {
	return p.event == ActionDelete.Pre() || p.event == ActionDelete.Post()
}

// pauses says whether a failed attempt is still too fresh for another one.
func (p *pass) pauses() bool {
	return p.AskedFor == p.record.Hooking.AskedFor && p.Now.Before(p.retry())
}

func (p *pass) retry() time.Time {
	pause := firstHookPause
	for tries := p.record.Hooking.Attempt; tries > 1 && pause < longestHookPause; tries-- {
		pause *= 2
	}
	return p.record.Hooking.FailedAt.Add(min(pause, longestHookPause))
}

func (p *pass) failure() HookProgress {
	return HookProgress{Failed: p.record.Hooking.Failed, Attempt: p.record.Hooking.Attempt, Retry: p.retry()}
}

// again begins the next attempt. What ran to its end does not run again; what is only there is made again where a delete
// policy took it away, since the others may need it.
func (p *pass) again(hooks []*Hook) {
	ended := p.record.Hooking.Ended
	p.record.Hooking = Hooking{Event: p.event, Attempt: p.record.Hooking.Attempt + 1, AskedFor: p.AskedFor, Ended: ended}
	if p.isRollout() {
		p.record.pend()
	}
	for _, hook := range hooks {
		if object, err := hook.object(); err == nil && hook.ran(p.event) && hook.Run.Cleaned && !(apply.Hook{Object: object}).Runs() {
			hook.Run = nil
		}
	}
	p.changed = true
}

// fail ends an attempt.
func (p *pass) fail(ctx context.Context, hooks []*Hook, failed *Hook, why string) (HookProgress, error) {
	object, err := failed.object()
	if err != nil {
		return HookProgress{}, err
	}
	state := &p.record.Hooking
	state.Failed = fmt.Sprintf("hook %q of event %s failed: %s: %s", failed.Path, p.event, apply.Hook{Object: object}.Key(), why)
	state.FailedAt, state.AskedFor = metav1.NewTime(p.Now), p.AskedFor
	if failed.Run == nil || failed.Run.Event != p.event || failed.Run.Attempt != state.Attempt {
		failed.Run = &HookRun{Event: p.event, Attempt: state.Attempt, Started: metav1.NewTime(p.Now)}
	}
	failed.Run.Phase, failed.Run.Ended = PhaseFailed, metav1.NewTime(p.Now)
	if p.isRollout() {
		p.record.fail(state.Failed)
	}
	p.changed = true
	if err := p.save(ctx); err != nil {
		return HookProgress{}, err
	}
	return p.failure(), p.tidyUp(ctx, hooks)
}

// tidyUp follows the delete policies after a failure, once.
func (p *pass) tidyUp(ctx context.Context, hooks []*Hook) error {
	if p.record.Hooking.Tidy {
		return nil
	}
	for _, hook := range slices.Backward(hooks) {
		goes := hook.ran(p.event) && hook.has(deleteSucceeded) ||
			hook.Run != nil && hook.Run.Phase == PhaseFailed && hook.has(deleteFailed)
		if _, err := p.drop(ctx, hook, goes); err != nil {
			return err
		}
	}
	p.record.Hooking.Tidy, p.changed = true, true
	return p.save(ctx)
}

// finish ends an event whose hooks all did their work: those whose policy says so go, and are waited for.
func (p *pass) finish(ctx context.Context, hooks []*Hook) (HookProgress, error) {
	if slices.ContainsFunc(hooks, func(hook *Hook) bool { return hook.has(deleteSucceeded) }) {
		if err := p.save(ctx); err != nil { // what is gone could not be told from what was never made
			return HookProgress{}, err
		}
	}
	for _, hook := range slices.Backward(hooks) {
		waiting, err := p.drop(ctx, hook, hook.has(deleteSucceeded))
		if err != nil {
			return HookProgress{}, err
		}
		if waiting != "" {
			return HookProgress{Waiting: waiting}, p.save(ctx)
		}
	}
	p.record.Hooking.Ended = append(p.record.Hooking.Ended, p.event)
	if p.isRollout() && p.event == p.record.Action.Post() {
		p.record.Deployed()
	}
	p.changed = true
	return HookProgress{Done: true}, p.save(ctx)
}

// drop deletes the object of a hook's run; waiting says that it is still going.
func (p *pass) drop(ctx context.Context, hook *Hook, goes bool) (waiting string, err error) {
	if !goes || hook.Run == nil || hook.Run.Event != p.event || hook.Run.Cleaned || hook.Run.UID == "" {
		return "", nil
	}
	made, err := p.made(hook)
	if err != nil || made.HoldsMore() {
		return "", err
	}
	sight, err := p.remove(ctx, made, hook.Run.UID)
	if err != nil {
		return "", err
	}
	if sight.UID == hook.Run.UID && p.record.Hooking.Failed == "" {
		return fmt.Sprintf("hook %s: %s", made.Key(), sight.Message), nil
	}
	hook.Run.Cleaned, p.changed = true, true
	return "", nil
}

// remove deletes an object and looks at it again. One whose kind is not served any more went with its kind.
func (p *pass) remove(ctx context.Context, made apply.Hook, uid types.UID) (apply.HookState, error) {
	err := apply.DropHook(ctx, p.Target, made, uid)
	if err == nil {
		var sight apply.HookState
		if sight, err = apply.ReadHook(ctx, p.Target, p.record.Owner(), made); err == nil {
			return sight, nil
		}
	}
	if _, ok := errors.AsType[*apply.NoPlaceError](err); ok && !made.Runs() {
		return apply.HookState{}, nil
	}
	return apply.HookState{}, err
}

func (p *pass) made(hook *Hook) (apply.Hook, error) {
	object, err := hook.object()
	helm := p.record.Helm
	return apply.Hook{
		Object: object, Run: p.id(), TargetNamespace: p.record.TargetNamespace,
		Release: ownership.HelmMarks{ReleaseName: helm.Name, ReleaseNamespace: helm.Namespace},
	}, err
}
