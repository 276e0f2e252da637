package installer

import (
	"context"
	"slices"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/removal"
	"github.com/trellis-addons/trellis/pkg/revision"
)

// Emptied are the objects that a revision without any would let go of, as its prune would find them,
// and the hash that approves it; none where nothing is installed, or all of it may go: that was
// approved, or is on record as what is wanted. There is no hash while an object has no UID: it would
// hold for others of the same names.
func (p *Pass) Emptied(ctx context.Context, crds v1.CRDRemove) (objects ownership.Inventory, approval string, stop *Stop) {
	record := p.Record()
	if record == nil || record.IsEmpty() {
		return nil, "", nil
	}
	objects, err := p.unshared(ctx, removal.Pruned(slices.Concat(record.InCluster(), record.Superseded), crds))
	if err != nil {
		return nil, "", Failed(err)
	}
	if lacksUID(objects) { // a rollout did not end; the cluster is asked only then
		if objects, err = removal.Present(ctx, p.target(), p.Owner, objects); err != nil {
			return nil, "", p.remoteFailed(AboutApply, err)
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
	marked, report := p.marked("Prune")
	left, notes, err := removal.Prune(ctx, p.target(), superseded, removal.PruneOptions{
		Owner: p.Owner, Heir: p.heir(), Total: record.SupersededOf,
		Approved: p.Asked.PruneApproved, Many: p.Asked.PruneMany, CRDs: record.CRDs.Remove, Marked: marked,
	})
	report()
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
