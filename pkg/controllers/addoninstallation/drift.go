package addoninstallation

import (
	"context"

	"github.com/trellis-addons/trellis/pkg/loop"
)

// repairDrift looks whether the user cluster still has what was applied, and puts back what differs.
func (r *Reconciler) repairDrift(ctx context.Context, f *facts) loop.Outcome {
	stop := f.RepairDrift(ctx)
	if f.Surveyed {
		f.memory.refreshed = false
	}
	return outcomeOf(stop)
}

// rest ends a pass that has nothing more to do before the next look.
func (r *Reconciler) rest(_ context.Context, f *facts) loop.Outcome {
	return loop.Done{Recheck: f.NextSurvey()}
}
