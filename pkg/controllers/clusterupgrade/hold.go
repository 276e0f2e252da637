package clusterupgrade

import (
	"context"

	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/fleet/upgrade"
)

// hold writes the decision onto the Cluster, before it is reported: otherwise the condition would count time in which
// nothing was held.
func (r *Reconciler) hold(ctx context.Context, f *facts) *loop.Outcome {
	f.decision = upgrade.Decide(&f.observed, r.Options.Rules, f.report.before, r.Clock.Now())
	decided, of := f.decision, f.cluster.Upgrade
	if of == nil {
		return nil
	}
	isFree := decided.Workers != upgrade.WorkersHeld
	isRight := decided.Hook == f.observed.Hook && decided.Workers == f.observed.Workers
	if isRight && (!of.Stray || !isFree) {
		return nil
	}
	if err := r.Holder.Hold(ctx, f.cluster.Ref, cluster.Holds{Hook: decided.Hook, Workers: !isFree}); err != nil {
		return failed(err)
	}
	return nil
}
