package installer

import (
	"context"
	"slices"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/removal"
	"github.com/trellis-addons/trellis/pkg/install/revision"
)

// Emptied returns the objects that an empty revision would prune, and the hash that approves the prune. It returns none
// if nothing is installed, if the prune is approved, or if the record shows that it is wanted. While an object has no
// UID there is no hash: it would be valid for other objects of the same names.
func (p *Run) Emptied(ctx context.Context, crds v1.CRDRemove) (objects ownership.Inventory, approval string, stop *loop.Outcome) {
	record := p.Record()
	if record == nil || record.IsEmpty() {
		return nil, "", nil
	}
	objects, err := p.unshared(ctx, removal.Pruned(slices.Concat(record.InCluster(), record.Superseded), crds))
	if err != nil {
		return nil, "", Failed(err)
	}
	if lacksUID(objects) { // an unfinished rollout; only then the cluster is called
		if objects, err = removal.Present(ctx, p.target(), p.Owner, objects); err != nil {
			return nil, "", p.remoteFailed(v1.ConditionApplied, err)
		}
	}
	if lacksUID(objects) {
		return objects, "", nil
	}
	if approval = removal.Approval(objects); approval == p.Asked.PruneApproved {
		return nil, "", nil
	}
	return objects, approval, nil
}

func lacksUID(objects ownership.Inventory) bool {
	return slices.ContainsFunc(objects, func(entry ownership.Entry) bool { return entry.UID == "" })
}

// Prune removes objects that only earlier revisions had, once everything else is healthy.
func (p *Run) Prune(ctx context.Context) *loop.Outcome {
	record := p.Record()
	if len(record.Superseded) == 0 {
		return nil
	}
	superseded, err := p.prunable(ctx)
	if err != nil {
		return Failed(err)
	}
	marked, report := p.marked("Prune")
	left, notes, err := removal.Prune(ctx, p.target(), superseded, removal.PruneOptions{
		Owner: p.Owner, Heir: p.heir(), Total: record.SupersededOf,
		Approved: p.Asked.PruneApproved, Many: p.Asked.PruneMany, CRDs: record.CRDs.Remove, Marked: marked,
	})
	report()
	if err != nil {
		return p.remoteFailed(v1.ConditionApplied, err)
	}
	if len(left) != len(record.Superseded) {
		if stop := p.Amend(ctx, func(kept *revision.Record) { kept.Superseded = left }); stop != nil {
			return stop
		}
	}
	if len(notes) == 0 {
		return nil
	}
	return waitToApply(notes[0].Reason, TextOf(notes), RefusedRecheck)
}
