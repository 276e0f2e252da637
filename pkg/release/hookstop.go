package release

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/trellis-addons/trellis/pkg/apply"
)

// Stop ends the Jobs and Pods of an event that never came to its end, because the release is removed: they would go on beside
// the removal, and after it. It is called again until nothing is waited for. A removal's own hooks are left alone. An error is a
// call that failed.
func (h HookRunner) Stop(ctx context.Context, record *Record) (waiting string, err error) {
	event := record.Hooking.Event
	p := &pass{HookRunner: h, record: record, event: event}
	if record.Helm == nil || p.isDeletion() || slices.Contains(record.Hooking.Ended, event) {
		return "", nil
	}
	for _, hook := range record.hooksOf(event) {
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
	sight, err := apply.ReadHook(ctx, p.Target, p.record.Owner(), made)
	if err != nil || !sight.Ours || sight.Run != made.Run || sight.Ended || sight.Failed {
		return "", err
	}
	if !sight.Deleting {
		if sight, err = p.remove(ctx, made, sight.UID); err != nil || sight.UID == "" {
			return "", err
		}
	}
	return fmt.Sprintf("hook %s of event %s, which ran, has to end first: %s", made.Key(), p.event, sight.Message), nil
}
