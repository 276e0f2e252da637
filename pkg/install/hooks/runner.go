package hooks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-addons/trellis/pkg/base/backoff"
	"github.com/trellis-addons/trellis/pkg/base/times"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/apply"
)

const (
	// firstPause follows the first failed attempt, and doubles up to longestPause.
	firstPause   = 10 * time.Second
	longestPause = 5 * time.Minute
	// podGrace is how long a Job may have no Pod before the reason is read.
	podGrace = 10 * time.Second
)

// Runner runs the hooks of one event, one after the other, as far as possible without waiting.
type Runner struct {
	Target  calls.Target
	Timeout time.Duration
	Now     time.Time
	// AskedFor is annotation reconcile-at: another value begins the next attempt.
	AskedFor string
	// Adopt lets a hook replace an object that is not ours.
	Adopt bool
	// Save writes the record, before each change that the user cluster could not show later.
	Save func(ctx context.Context) error
	// Skipped is called for hooks of a removal that have nowhere to run; it may be nil.
	Skipped func(message string)
}

// Progress is the progress of an event.
type Progress struct {
	// Done says that every hook of the event succeeded, or that there is none.
	Done    bool
	Waiting string
	// Failed says which hook failed at which object, why and when, and Cause is its cause in the user cluster; Retry is the next
	// attempt.
	Failed  string
	Cause   string
	Attempt int
	Retry   time.Time
}

// Revision is the revision that hooks run for.
type Revision struct {
	// Set is the record of its hooks; a run changes it.
	*Set
	Owner           ownership.Owner
	TargetNamespace string
	// Release is the Helm release; nil for go-template. Number and Time identify the revision.
	Release *ownership.HelmMarks
	Number  int
	Time    metav1.Time
	Shown   Shown
}

// Shown updates helm's view of a revision, by the hooks of its own action.
type Shown interface {
	Pending()
	Failed(problem string)
	Deployed()
}

type execution struct {
	Runner
	Revision
	event   string
	changed bool
}

// Run advances an event, and changes Set and Shown. An error is a failed call.
func (h Runner) Run(ctx context.Context, revision Revision, event string) (Progress, error) {
	hooks := revision.hooksOf(event)
	state := &revision.HooksState
	if len(hooks) == 0 || slices.Contains(state.Ended, event) {
		return Progress{Done: true}, nil
	}
	p := &execution{Runner: h, Revision: revision, event: event}
	if state.Event != event {
		*state = State{Event: event, Attempt: 1, AskedFor: h.AskedFor, Ended: state.Ended}
	}
	p.mendTimes(hooks)
	if state.Failed != "" {
		if err := p.applyDeletePolicies(ctx, hooks); err != nil {
			return p.failure(), err
		}
		if p.isPaused() {
			return p.failure(), p.save(ctx)
		}
		p.beginRetry(hooks)
	}
	for _, hook := range hooks {
		if hook.ran(event) {
			continue
		}
		waiting, failed, err := p.advance(ctx, hook)
		switch {
		case err != nil:
			return Progress{}, err
		case failed != "":
			return p.fail(ctx, hooks, hook, failed)
		case waiting != "":
			return Progress{Waiting: waiting}, p.save(ctx)
		}
	}
	return p.finish(ctx, hooks)
}

// mendTimes replaces times from a clock that was ahead by the current time: waits from then on would be too long.
func (p *execution) mendTimes(hooks []*Hook) {
	stored := []*metav1.Time{&p.HooksState.FailedAt}
	for _, hook := range hooks {
		if hook.Run != nil {
			stored = append(stored, &hook.Run.Started)
		}
	}
	for _, one := range stored {
		if times.IsAhead(one.Time, p.Now) {
			*one, p.changed = metav1.NewTime(p.Now), true
		}
	}
}

func (p *execution) save(ctx context.Context) error {
	if !p.changed {
		return nil
	}
	p.changed = false
	return p.Save(ctx)
}

func (p *execution) id() string {
	name := p.Owner.Installation
	if p.Release != nil {
		name = p.Release.ReleaseName
	}
	return fmt.Sprintf("%s.v%d.%s.%d.%x", name, p.Number, p.event, p.HooksState.Attempt, p.Time.Unix())
}

// isRollout says whether the event belongs to the revision's action, and is no test or removal.
func (p *execution) isRollout() bool {
	return p.event == p.Action.Pre() || p.event == p.Action.Post()
}

func (p *execution) isDeletion() bool {
	return p.event == ActionDelete.Pre() || p.event == ActionDelete.Post()
}

func (p *execution) isPaused() bool {
	return p.AskedFor == p.HooksState.AskedFor && p.Now.Before(p.retryAt())
}

func (p *execution) retryAt() time.Time {
	return p.HooksState.FailedAt.Add(backoff.After(p.HooksState.Attempt, firstPause, longestPause))
}

func (p *execution) failure() Progress {
	return Progress{Failed: p.HooksState.Failed, Cause: p.HooksState.Cause, Attempt: p.HooksState.Attempt, Retry: p.retryAt()}
}

// beginRetry begins the next attempt. Jobs and Pods that succeeded do not run again; other objects
// that a delete policy removed are created again, since other hooks may need them.
func (p *execution) beginRetry(hooks []*Hook) {
	ended := p.HooksState.Ended
	p.HooksState = State{Event: p.event, Attempt: p.HooksState.Attempt + 1, AskedFor: p.AskedFor, Ended: ended}
	if p.isRollout() {
		p.Shown.Pending()
	}
	for _, hook := range hooks {
		if object, err := hook.Decode(); err == nil && hook.ran(p.event) && hook.Run.Cleaned && !(apply.Hook{Object: object}).Runs() {
			hook.Run = nil
		}
	}
	p.changed = true
}

func (p *execution) fail(ctx context.Context, hooks []*Hook, failed *Hook, why string) (Progress, error) {
	object, err := failed.Decode()
	if err != nil {
		return Progress{}, err
	}
	state := &p.HooksState
	state.Failed = fmt.Sprintf("hook %q of event %s failed: %s: %s", failed.Path, p.event, apply.Hook{Object: object}.Key(), why)
	state.FailedAt, state.AskedFor = metav1.NewTime(p.Now), p.AskedFor
	if failed.Run == nil || failed.Run.Event != p.event || failed.Run.Attempt != state.Attempt {
		failed.Run = &Run{Event: p.event, Attempt: state.Attempt, Started: metav1.NewTime(p.Now)}
	}
	failed.Run.Phase, failed.Run.Ended = PhaseFailed, metav1.NewTime(p.Now)
	if p.isRollout() {
		p.Shown.Failed(state.Failed)
	}
	p.changed = true
	if err := p.save(ctx); err != nil {
		return Progress{}, err
	}
	return p.failure(), p.applyDeletePolicies(ctx, hooks)
}

func (p *execution) applyDeletePolicies(ctx context.Context, hooks []*Hook) error {
	if p.HooksState.Tidy {
		return nil
	}
	for _, hook := range slices.Backward(hooks) {
		goes := hook.ran(p.event) && hook.has(DeleteSucceeded) ||
			hook.Run != nil && hook.Run.Phase == PhaseFailed && hook.has(deleteFailed)
		if _, err := p.deleteRun(ctx, hook, goes); err != nil {
			return err
		}
	}
	p.HooksState.Tidy, p.changed = true, true
	return p.save(ctx)
}

// finish ends an event whose hooks succeeded; it waits for deletions by policy.
func (p *execution) finish(ctx context.Context, hooks []*Hook) (Progress, error) {
	if slices.ContainsFunc(hooks, func(hook *Hook) bool { return hook.has(DeleteSucceeded) }) {
		if err := p.save(ctx); err != nil { // a deleted object looks as if it was never created
			return Progress{}, err
		}
	}
	for _, hook := range slices.Backward(hooks) {
		waiting, err := p.deleteRun(ctx, hook, hook.has(DeleteSucceeded))
		if err != nil {
			return Progress{}, err
		}
		if waiting != "" {
			return Progress{Waiting: waiting}, p.save(ctx)
		}
	}
	p.HooksState.Ended = append(p.HooksState.Ended, p.event)
	if p.isRollout() && p.event == p.Action.Post() {
		p.Shown.Deployed()
	}
	p.changed = true
	return Progress{Done: true}, p.save(ctx)
}

// deleteRun deletes the object of a hook's run; waiting says that it still exists.
func (p *execution) deleteRun(ctx context.Context, hook *Hook, goes bool) (waiting string, err error) {
	if !goes || hook.Run == nil || hook.Run.Event != p.event || hook.Run.Cleaned || hook.Run.UID == "" {
		return "", nil
	}
	made, err := p.made(hook)
	if err != nil || made.HoldsMore() {
		return "", err
	}
	seen, err := p.remove(ctx, made, hook.Run.UID)
	if err != nil {
		return "", err
	}
	if seen.UID == hook.Run.UID && p.HooksState.Failed == "" {
		return fmt.Sprintf("hook %s: %s", made.Key(), seen.Message), nil
	}
	hook.Run.Cleaned, p.changed = true, true
	return "", nil
}

// remove deletes an object and reads it again. An unserved kind has no objects.
func (p *execution) remove(ctx context.Context, made apply.Hook, uid types.UID) (apply.HookState, error) {
	err := apply.DeleteHook(ctx, p.Target, made, uid)
	if err == nil {
		var seen apply.HookState
		if seen, err = apply.ReadHook(ctx, p.Target, p.Owner, made); err == nil {
			return seen, nil
		}
	}
	if _, ok := errors.AsType[*apply.NoPlaceError](err); ok && !made.Runs() {
		return apply.HookState{}, nil
	}
	return apply.HookState{}, err
}

func (p *execution) made(hook *Hook) (apply.Hook, error) {
	object, err := hook.Decode()
	return apply.Hook{Object: object, Run: p.id(), TargetNamespace: p.TargetNamespace, Release: p.Release}, err
}
