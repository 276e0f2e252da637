package apply

import (
	"context"
	"sync"

	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/fieldsets"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// AsRecorded returns which of the objects, which our manager wrote at these times, have the recorded content: a dry run
// of the recorded content changes nothing. An object that refuses the dry run has other content. API servers count
// seconds, so an object that was written in the current second counts as the same. An error is a failed call.
func AsRecorded(
	ctx context.Context, target calls.Target, owner ownership.Owner, writtenAt map[ownership.Key]int64, applied Applied,
) (same []ownership.Key, err error) {
	w := &writer{owner: owner, target: target, kinds: &calls.Kinds{Mapper: target.Mapper, Declared: calls.DeclaredKinds(applied.Objects)}}
	keys := make([]ownership.Key, 0, len(writtenAt))
	for key := range writtenAt {
		keys = append(keys, key)
	}
	var lock sync.Mutex
	err = calls.Each(ctx, driftedItems(keys, applied), func(ctx context.Context, it *item) error {
		at, err := w.rehearse(ctx, it)
		if err != nil || at == 0 || at != writtenAt[it.key] {
			return err
		}
		lock.Lock()
		defer lock.Unlock()
		same = append(same, it.key)
		return nil
	})
	return same, err
}

// rehearse returns the time that our fields would have after a write. It is the previous time if the write would
// change nothing, and 0 if the object is refused.
func (w *writer) rehearse(ctx context.Context, it *item) (writtenAt int64, err error) {
	client, served, err := w.client(it)
	if err != nil || !served {
		return 0, err
	}
	_, leaves := it.leavesReplicas()
	live, err := w.send(ctx, client, it, attempt{force: true, dryRun: true, withoutReplicas: leaves})
	switch {
	case calls.IsRefusal(err), calls.IsUnexplained(err), isUIDMismatch(err):
		return 0, nil
	case err != nil:
		return 0, err
	}
	_, writtenAt = fieldsets.Of(live.ManagedFields, w.owner.FieldManager())
	return writtenAt, nil
}
