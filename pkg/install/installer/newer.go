package installer

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/pkg/install/survey"
)

// leaveNewer excludes objects from the drift that our manager wrote after the record. Those with the recorded content
// are recorded: the save of a repair was lost. The others are newer than a restored record. Repairing them would undo
// updates, so they stay, are reported, and are overwritten by the next rollout. Annotation reconcile-at requests the
// record's content.
func (p *Run) leaveNewer(ctx context.Context, drift []survey.Drift) (newer []ownership.Key, rest []survey.Drift, stop *loop.Outcome) {
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
		return nil, nil, p.recordUnknown(err)
	}
	same, err := apply.AsRecorded(ctx, p.target(), p.Owner, writtenAt, apply.Applied{Objects: objects, Inventory: record.Inventory})
	if err != nil {
		return nil, nil, p.remoteFailed(v1.ConditionHealthy, err)
	}
	isSame := sets.New(same...)
	newer = slices.DeleteFunc(newer, isSame.Has)
	if noteNewer(record, writtenAt, isSame) {
		if err := p.saveAmended(ctx, record); err != nil {
			return nil, nil, p.recordUnknown(err)
		}
	}
	return newer, rest, nil
}

// noteNewer records when objects with the recorded content were written, and which others the next rollout has to
// write; false if the record has all of that already.
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
