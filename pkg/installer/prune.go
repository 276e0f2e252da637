package installer

import (
	"context"
	"slices"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/removal"
	"github.com/trellis-addons/trellis/pkg/revision"
)

// Emptied are the objects that a revision without any would let go of; none where nothing is
// installed, or all of it may go: that was approved, or is on record as what is wanted.
func (p *Pass) Emptied(crds v1.CRDRemove) (objects ownership.Inventory, approval string) {
	record := p.Record()
	if record == nil || record.IsEmpty() {
		return nil, ""
	}
	objects = removal.Pruned(slices.Concat(record.InCluster(), record.Superseded), crds)
	if approval = removal.Approval(objects); approval == p.Asked.PruneApproved {
		return nil, ""
	}
	return objects, approval
}

// Prune removes what earlier revisions had and this one has not, once everything else is healthy.
func (p *Pass) Prune(ctx context.Context) *Stop {
	record := p.Record()
	if len(record.Superseded) == 0 {
		return nil
	}
	superseded, err := p.prunable(ctx)
	if err != nil {
		return Failed(err)
	}
	left, notes, err := removal.Prune(ctx, p.target(), superseded, removal.PruneOptions{
		Owner: p.Owner, Total: record.SupersededOf,
		Approved: p.Asked.PruneApproved, Many: p.Asked.PruneMany, CRDs: record.CRDs.Remove,
	})
	if err != nil {
		return p.remoteFailed(AboutApply, err)
	}
	if len(left) != len(record.Superseded) {
		if stop := p.Amend(ctx, func(kept *revision.Record) { kept.Superseded = left }); stop != nil {
			return stop
		}
	}
	if len(notes) == 0 {
		return nil
	}
	return &Stop{
		About: AboutApply, Reason: notes[0].Reason, Message: TextOf(notes), Recheck: RefusedRecheck,
	}
}
