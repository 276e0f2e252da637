package installer

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/pkg/install/hooks"
	"github.com/trellis-addons/trellis/pkg/install/revision"
)

// Begin records the intent of a new revision before its first write: the caller's record of catalogue and values, the
// objects of this reconciliation, and those of the previous revision. If replaces is set, there is no rollback to the
// installed version.
func (p *Run) Begin(ctx context.Context, wanted revision.Record, replaces bool) *loop.Outcome {
	intent, err := p.intent(wanted)
	if err != nil {
		return Failed(err)
	}
	if err := p.nameSiblings(ctx, intent); err != nil {
		return Failed(err)
	}
	if stop := p.clearHooks(ctx, intent.Hooks); stop != nil {
		return stop
	}
	if !replaces {
		if intent.LastGood, err = p.lastGood(ctx, intent.Atomic); err != nil {
			return p.remoteFailed(v1.ConditionApplied, err)
		}
	}
	if err := p.save(ctx, intent); err != nil {
		return p.recordUnknown(err)
	}
	p.State.begin(intent)
	p.claimName(intent.Helm)
	p.reportAdoption(p.Foreign, p.extras)
	return nil
}

// Rehearse tries the writes of a revision in the user cluster by dry runs, for the first objects at most. The revision is not recorded,
// so this Run and its State can't be used for a reconciliation afterwards.
func (p *Run) Rehearse(ctx context.Context, wanted revision.Record, most int) (apply.Rehearsal, error) {
	if p.Decision.IsRecorded() {
		return apply.Rehearsal{}, nil
	}
	intent, err := p.intent(wanted)
	if err == nil {
		err = p.nameSiblings(ctx, intent)
	}
	if err != nil {
		return apply.Rehearsal{}, err
	}
	p.State.begin(intent)
	p.PlanRollout()
	p.State.rollout.SetNeighbours(p.neighbours())
	return p.State.rollout.Rehearse(ctx, p.target(), most)
}

func (p *Run) intent(wanted revision.Record) (*revision.Record, error) {
	objects, err := revision.EncodeObjects(p.Objects)
	if err != nil {
		return nil, err
	}
	intent := &wanted
	intent.Format, intent.Revision, intent.State = revision.Format, p.Record().Next(), revision.StateIntent
	intent.Installation = p.Owner.Installation
	intent.BelongTo(p.ClusterOwner)
	intent.TargetNamespace = p.Asked.TargetNamespace
	intent.Objects, intent.Time = objects, p.stamp()
	if previous := p.Record(); previous != nil && previous.Revision == intent.Revision && !intent.Time.After(previous.Time.Time) {
		intent.Time = metav1.NewTime(previous.Time.Add(time.Second)) // number and time distinguish runs of hooks
	}
	if p.Owner.ClusterUID != p.Cluster.UID { // the Cluster was recreated for the same user cluster
		intent.Origin = p.Owner.ClusterUID
	}
	var known ownership.Inventory
	if previous := p.Record(); previous != nil {
		known, intent.Superseded, intent.Settled = previous.InCluster(), previous.Superseded, previous.Settled
		intent.Shared, intent.PreviousAddon = previous.Shared, previous.PreviousAddon
		if previous.State == revision.StateIntent || len(previous.Superseded) > 0 {
			intent.Siblings = previous.Siblings // deleted siblings may have left planned objects
		}
		intent.Hub = previous.Ask(intent.Access)
		if previous.Addon != intent.Addon {
			intent.PreviousAddon = previous.Addon
		}
	}
	intent.Superseded = append(intent.Superseded, p.extras...)
	intent.Inventory = apply.Planned(p.Objects, known)
	intent.Previous = previousRelease(p.Record(), intent.Helm)
	intent.Hooks, intent.HooksDigest = p.Hooks, hooks.Digest(p.Hooks)
	intent.Begin(revision.NextAction(p.Record(), intent.Helm))
	return intent, nil
}

// countEarlier counts the objects that earlier revisions left, of which a prune may delete half at once. New objects do
// not count: otherwise an upgrade could delete everything by adding more.
func countEarlier(intent *revision.Record) int {
	count := len(intent.Superseded) + len(intent.Shared)
	for _, entry := range intent.Inventory {
		if entry.UID != "" {
			count++
		}
	}
	return count
}

// lastGood is the revision to which the next one would be rolled back: the present one if it was healthy, otherwise its
// own. For an upgrade without rollback only the record counts: observations of this process would depend on its timing.
func (p *Run) lastGood(ctx context.Context, atomic bool) (int, error) {
	record := p.Record()
	good, sure := record.Good()
	switch {
	case sure, !atomic:
		return good, nil
	case p.State.health != nil && p.State.wasHealthy:
		return record.Revision, nil
	case p.State.health != nil:
		return good, nil
	}
	objects, err := p.readHealth(ctx, false) // a new process has no observations
	if err == nil && healthy(p.withLease(*objects)) {
		return record.Revision, nil
	}
	return good, err
}
