package hooks

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/trellis-addons/trellis/pkg/apply"
)

// Stop ends the Jobs and Pods of an event that never came to its end, because the release is
// removed: they would go on beside the removal, and after it. It is called again until nothing is
// waited for. A removal's own hooks are left alone. An error is a call that failed.
func (h Runner) Stop(ctx context.Context, revision Revision) (waiting string, err error) {
	event := revision.HooksState.Event
	p := &pass{Runner: h, Revision: revision, event: event}
	if p.isDeletion() || slices.Contains(revision.HooksState.Ended, event) {
		return "", nil
	}
	for _, hook := range revision.hooksOf(event) {
		made, err := p.made(hook)
		if err != nil || !made.Runs() {
			continue // what is no object was never made
		}
		left, err := p.stop(ctx, made)
		if _, gone := errors.AsType[*apply.NoPlaceError](err); err != nil && !gone {
			return "", err
		}
		if waiting == "" {
			waiting = left
		}
	}
	return waiting, nil
}

// stop deletes an object that runs for the last attempt, which is on record or not.
func (p *pass) stop(ctx context.Context, made apply.Hook) (waiting string, err error) {
	seen, err := apply.ReadHook(ctx, p.Target, p.Owner, made)
	if err != nil || !seen.Ours || seen.Run != made.Run || seen.Ended || seen.Failed {
		return "", err
	}
	if !seen.Deleting {
		if seen, err = p.remove(ctx, made, seen.UID); err != nil || seen.UID == "" {
			return "", err
		}
	}
	return fmt.Sprintf("hook %s of event %s, which ran, has to end first: %s", made.Key(), p.event, seen.Message), nil
}
