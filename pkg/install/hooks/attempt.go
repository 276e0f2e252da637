package hooks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-addons/trellis/pkg/install/apply"
)

// advance takes one step with a hook: it ends done, waiting, or failed.
func (p *execution) advance(ctx context.Context, hook *Hook) (waiting, failed string, err error) {
	made, err := p.made(hook)
	if err != nil {
		return "", "", err
	}
	p.HooksState.Cause = ""
	waiting, failed, err = p.step(ctx, hook, made)
	noPlace, ok := errors.AsType[*apply.NoPlaceError](err)
	switch {
	case !ok:
		return waiting, failed, err
	case p.isDeletion():
		p.skip(hook, fmt.Sprintf("hook %q of event %s was not run: %s: %s", hook.Path, p.event, made.Key(), noPlace.Problem))
		return "", "", nil
	}
	return "", noPlace.Problem, nil
}

func (p *execution) step(ctx context.Context, hook *Hook, made apply.Hook) (waiting, failed string, err error) {
	seen, err := apply.ReadHook(ctx, p.Target, p.Owner, made)
	if err != nil {
		return "", "", err
	}
	begun := hook.Run != nil && hook.Run.Event == p.event && hook.Run.Attempt == p.HooksState.Attempt
	switch {
	case seen.Ours && seen.Run == made.Run:
		if !begun {
			p.begin(hook, seen.UID) // the process ended before that was recorded
		}
		return p.check(ctx, hook, made, seen)
	case begun && hook.Run.UID != "":
		return "", "it disappeared before its end was observed, so its result is unknown; the next attempt creates it again", nil
	case seen.UID == "":
		return p.make(ctx, hook, made)
	}
	return p.replace(ctx, hook, made, seen)
}

func (p *execution) replace(ctx context.Context, hook *Hook, made apply.Hook, seen apply.HookState) (waiting, failed string, err error) {
	switch {
	case seen.Deleting:
		return fmt.Sprintf("hook %s waits until an object with its name is deleted: %s", made.Key(), seen.Message), "", nil
	case !seen.Ours && !seen.Applied && !p.Adopt && !made.IsShared():
		return "", "an object with the hook's name exists already and was not created by this installation: delete that object, or " +
			"annotate the installation with addons.kubermatic.k8c.io/adopt: \"true\" to adopt the object", nil
	case made.HoldsMore() || !made.Runs() && !hook.has(DeleteBefore):
		p.begin(hook, "") // it must not be deleted, and the hook only needs it to exist
		p.succeed(hook)
		return "", "", nil
	case p.keeps(seen):
		return "", fmt.Sprintf("an object with the hook's name exists already and is not replaced, since %s: delete that object, or "+
			"rename the hook", seen.Obstacle), nil
	case seen.Running && p.Now.Sub(seen.Created) < p.Timeout:
		return fmt.Sprintf("hook %s waits for the end of an earlier attempt, which runs", made.Key()), "", nil
	}
	after, err := p.remove(ctx, made, seen.UID)
	if err != nil {
		return "", "", err
	}
	if after.UID != "" {
		return fmt.Sprintf("hook %s waits for the end of an earlier attempt: %s", made.Key(), after.Message), "", nil
	}
	return p.make(ctx, hook, made)
}

// keeps says whether an object is never replaced. During a removal the add-on's own object is replaced: the removal
// deletes it next.
func (p *execution) keeps(seen apply.HookState) bool {
	return !seen.Ours && seen.Obstacle != "" && (!seen.Applied || !p.isDeletion())
}

func (p *execution) make(ctx context.Context, hook *Hook, made apply.Hook) (waiting, failed string, err error) {
	if err := apply.CheckAccount(ctx, p.Target, made); err != nil {
		return "", "", err
	}
	uid, refused, err := apply.CreateHook(ctx, p.Target, p.Owner, made)
	if err != nil || refused.Text != "" {
		p.HooksState.Cause = refused.Cause
		return "", refused.Text, err
	}
	if uid == "" {
		return fmt.Sprintf("hook %s: another client created an object with its name in the meantime", made.Key()), "", nil
	}
	p.begin(hook, uid)
	if !made.Runs() {
		p.succeed(hook)
		return "", "", nil
	}
	return fmt.Sprintf("hook %s of event %s: it runs", made.Key(), p.event), "", nil
}

func (p *execution) check(ctx context.Context, hook *Hook, made apply.Hook, seen apply.HookState) (waiting, failed string, err error) {
	deadline := hook.Run.Started.Add(p.Timeout)
	switch {
	case seen.Ended:
		p.succeed(hook)
		return "", "", nil
	case seen.Failed:
		return "", seen.Message, nil
	case seen.Deleting:
		return "", "it was deleted while it ran", nil
	}
	isLate := p.Now.After(deadline)
	if seen.IsWithoutPod && (isLate || p.Now.Sub(hook.Run.Started.Time) > podGrace) {
		why := apply.WithoutPod(ctx, p.Target, made, seen.UID)
		seen.Message, p.HooksState.Cause = why.Text, why.Cause
	}
	if isLate {
		return "", fmt.Sprintf("it did not end within %s (%s)", p.Timeout.Round(time.Second), seen.Message), nil
	}
	return fmt.Sprintf("hook %s of event %s: %s", made.Key(), p.event, seen.Message), "", nil
}

func (p *execution) begin(hook *Hook, uid types.UID) {
	p.changed = true
	hook.Run = &Run{
		Event: p.event, Attempt: p.HooksState.Attempt, Phase: PhaseRunning, UID: uid, Started: metav1.NewTime(p.Now),
	}
}

// skip records a hook that has nowhere to run as done.
func (p *execution) skip(hook *Hook, why string) {
	p.begin(hook, "")
	p.succeed(hook)
	if p.Skipped != nil {
		p.Skipped(why)
	}
}

func (p *execution) succeed(hook *Hook) {
	p.changed = true
	hook.Run.Phase, hook.Run.Ended = PhaseSucceeded, metav1.NewTime(p.Now)
}

// Stop ends an unfinished event before the release is removed: it deletes the Jobs and Pods that run, and then the objects that a
// delete policy would have deleted, above all those with rights. Call it again until waiting is empty. A removal's own hooks
// continue, unless they are skipped.
func (h Runner) Stop(ctx context.Context, revision Revision, skipped bool) (waiting string, err error) {
	event := revision.HooksState.Event
	p := &execution{Runner: h, Revision: revision, event: event}
	if p.isDeletion() && !skipped || slices.Contains(revision.HooksState.Ended, event) {
		return "", nil
	}
	for _, run := range []bool{true, false} {
		for _, hook := range slices.Backward(revision.hooksOf(event)) {
			made, err := p.made(hook)
			if err != nil || made.Runs() != run || made.HoldsMore() {
				continue // it was never created, or stays
			}
			left, err := p.stop(ctx, hook, made)
			if _, gone := errors.AsType[*apply.NoPlaceError](err); err != nil && !gone {
				return "", err
			}
			waiting = cmp.Or(waiting, left)
		}
		if waiting != "" {
			return waiting, nil
		}
	}
	return "", nil
}

func (p *execution) stop(ctx context.Context, hook *Hook, made apply.Hook) (waiting string, err error) {
	seen, err := apply.ReadHook(ctx, p.Target, p.Owner, made)
	stays := seen.Ended && !hook.has(DeleteSucceeded) || seen.Failed && !hook.has(deleteFailed)
	if err != nil || !seen.Ours || seen.Run != made.Run || stays {
		return "", err
	}
	if !seen.Deleting {
		if seen, err = p.remove(ctx, made, seen.UID); err != nil || seen.UID == "" {
			return "", err
		}
	}
	return fmt.Sprintf("hook %s of event %s, which ran, has to end first: %s", made.Key(), p.event, seen.Message), nil
}

// Clear deletes the Jobs and Pods that hooks of go-template left, running or failed, if goes selects their hook:
// nothing else deletes them. Those of charts stay, as with Helm. Call it again until waiting is empty.
func (h Runner) Clear(ctx context.Context, revision Revision, goes func(hook *Hook) bool) (waiting string, err error) {
	if revision.Release != nil {
		return "", nil
	}
	p := &execution{Runner: h, Revision: revision}
	for i := range revision.Hooks {
		hook := &revision.Hooks[i]
		if !revision.mayBeLeft(hook) || !goes(hook) {
			continue
		}
		left, err := p.clear(ctx, hook)
		if _, gone := errors.AsType[*apply.NoPlaceError](err); err != nil && !gone {
			return "", err
		}
		waiting = cmp.Or(waiting, left)
	}
	return waiting, nil
}

func (p *execution) clear(ctx context.Context, hook *Hook) (waiting string, err error) {
	made, err := p.made(hook)
	if err != nil {
		return "", err
	}
	seen, err := apply.ReadHook(ctx, p.Target, p.Owner, made)
	if err != nil || !seen.Ours {
		return "", err
	}
	if !seen.Deleting {
		if seen, err = p.remove(ctx, made, seen.UID); err != nil || seen.UID == "" {
			return "", err
		}
	}
	return fmt.Sprintf("hook %s has to be deleted first: %s", made.Key(), seen.Message), nil
}

// mayBeLeft says whether a hook's object may exist: it was created and is not known to be deleted, or is of the
// running event, and may have been created just before the process ended.
func (s *Set) mayBeLeft(hook *Hook) bool {
	if hook.Run != nil && !hook.Run.Cleaned {
		return true
	}
	event := s.HooksState.Event
	return slices.Contains(hook.Events, event) && !slices.Contains(s.HooksState.Ended, event)
}
