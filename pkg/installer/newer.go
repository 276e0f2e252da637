package installer

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/revision"
	"github.com/trellis-addons/trellis/pkg/survey"
)

// leaveNewer takes objects that our manager wrote after what is on record out of the drift. Those
// that have the recorded content are on record from then on: the save of a repair was lost. The
// others have newer content than a record that was restored. Putting that back would take updates
// back, so it stays, is told, and is written over by whatever is applied next. Annotation
// reconcile-at asks for the record's content.
func (p *Pass) leaveNewer(ctx context.Context, drift []survey.Drift) (newer []ownership.Key, rest []survey.Drift, stop *Stop) {
	writtenAt := map[ownership.Key]int64{}
	for _, one := range drift {
		if one.Reason == survey.DriftNewer && !p.IsAskedFor() {
			writtenAt[one.Key] = one.WrittenAt
			newer = append(newer, one.Key)
		} else {
			rest = append(rest, one)
		}
	}
	if len(newer) == 0 {
		return nil, rest, nil
	}
	record, objects, err := p.recordedObjects(ctx)
	if err != nil {
		return nil, nil, p.doubted(err)
	}
	same, err := apply.AsRecorded(ctx, p.target(), p.Owner, writtenAt, apply.Applied{Objects: objects, Inventory: record.Inventory})
	if err != nil {
		return nil, nil, p.remoteFailed(AboutHealth, err)
	}
	isSame := sets.New(same...)
	newer = slices.DeleteFunc(newer, isSame.Has)
	if noteNewer(record, writtenAt, isSame) {
		if err := p.saveAmended(ctx, record); err != nil {
			return nil, nil, p.doubted(err)
		}
	}
	return newer, rest, nil
}

// noteNewer records when objects with the recorded content were written, and that others are to be
// written by the next rollout; false if all of that is on record.
func noteNewer(record *revision.Record, writtenAt map[ownership.Key]int64, isSame sets.Set[ownership.Key]) (changed bool) {
	inventory := slices.Clone(record.Inventory)
	for i := range inventory {
		entry := &inventory[i]
		at, isNewer := writtenAt[entry.Key]
		switch {
		case !isNewer:
		case isSame.Has(entry.Key):
			entry.WrittenAt, changed = at, true
		case entry.Applied:
			entry.Applied, changed = false, true
		}
	}
	record.Inventory = inventory
	return changed
}
