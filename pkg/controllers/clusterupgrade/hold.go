package clusterupgrade

import (
	"context"

	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/upgrade"
)

// hold writes what is decided onto the Cluster, before it is told: a condition that says more than
// was written would count as time that was waited.
func (r *Reconciler) hold(ctx context.Context, f *facts) loop.Outcome {
	f.decision = upgrade.Decide(&f.seen, r.Options.Rules, f.report.before, r.Clock.Now())
	decided, of := f.decision, f.cluster.Upgrade
	if of == nil {
		return nil
	}
	isFree := decided.Workers != upgrade.WorkersHeld
	isRight := decided.Hook == f.seen.Hook && decided.Workers == f.seen.Workers
	if isRight && (!of.Stray || !isFree) {
		return nil
	}
	if err := r.Holder.Hold(ctx, f.cluster.Ref, cluster.Holds{Hook: decided.Hook, Workers: !isFree}); err != nil {
		return failed(err)
	}
	return nil
}
