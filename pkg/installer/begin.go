package installer

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/hooks"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/revision"
)

// Begin records the intent of a new revision, before anything of it is written: what is wanted, of
// which the caller says what the catalogue and the values come to, with the objects of this pass,
// and what the revision before had. Where replaces is set nothing goes back to the version that is
// installed.
func (p *Pass) Begin(ctx context.Context, wanted revision.Record, replaces bool) *Stop {
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
			return p.remoteFailed(AboutApply, err)
		}
	}
	if err := p.save(ctx, intent); err != nil {
		return p.doubted(err)
	}
	p.State.begin(intent)
	p.claimName(intent.Helm)
	p.reportAdoption(p.Foreign, p.extras)
	return nil
}

func (p *Pass) intent(wanted revision.Record) (*revision.Record, error) {
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
		intent.Time = metav1.NewTime(previous.Time.Add(time.Second)) // number and time tell runs of hooks apart
	}
	if p.Owner.ClusterUID != p.Cluster.UID { // it came back over the same user cluster
		intent.Origin = p.Owner.ClusterUID
	}
	var known ownership.Inventory
	if previous := p.Record(); previous != nil {
		known, intent.Superseded, intent.Settled = previous.InCluster(), previous.Superseded, previous.Settled
		intent.Shared, intent.FormerAddon = previous.Shared, previous.FormerAddon
		if previous.State == revision.StateIntent || len(previous.Superseded) > 0 {
			intent.Siblings = previous.Siblings // those that are gone may have left objects that are planned
		}
		intent.Hub = previous.Ask(intent.Access)
		if previous.Addon != intent.Addon {
			intent.FormerAddon = previous.Addon
		}
	}
	intent.Superseded = append(intent.Superseded, p.extras...)
	intent.Inventory = apply.Planned(p.Objects, known)
	intent.Former = formerRelease(p.Record(), intent.Helm)
	intent.Hooks, intent.HooksDigest = p.Hooks, hooks.Digest(p.Hooks)
	intent.Begin(revision.NextAction(p.Record(), intent.Helm))
	return intent, nil
}

// countEarlier counts the objects that earlier revisions left, of which a prune may take half at
// once: what the present one brings does not count, or an upgrade could drop everything by bringing
// more.
func countEarlier(intent *revision.Record) int {
	count := len(intent.Superseded) + len(intent.Shared)
	for _, entry := range intent.Inventory {
		if entry.UID != "" {
			count++
		}
	}
	return count
}

// lastGood is the revision that the next one would give way to: the present one if it was healthy
// once, else the one that it would give way to itself. Of an upgrade that does not give way only
// what is on record counts: what else this process happened to see would differ with its pace.
func (p *Pass) lastGood(ctx context.Context, atomic bool) (int, error) {
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
	objects, err := p.readHealth(ctx, false) // a process that has just begun knows nothing
	if err == nil && healthy(p.withLease(*objects)) {
		return record.Revision, nil
	}
	return good, err
}
