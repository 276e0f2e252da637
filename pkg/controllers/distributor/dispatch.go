package distributor

import (
	"context"

	"github.com/trellis-addons/trellis/pkg/controllers/distributor/seed"
	"github.com/trellis-addons/trellis/pkg/loop"
)

func (r *Reconciler) dispatch(ctx context.Context, f *facts) loop.Outcome {
	held := r.returning(f)
	for _, reading := range f.readings {
		if reading.isHeld() {
			held[reading.object.Name] = true
		}
	}
	r.workers.Assign(ctx, f.targets, &seed.Wanted{
		Addons: f.merged.Addons, Refused: f.merged.Refused, Secrets: f.secrets, Held: held, Leave: f.leave, Sets: f.sets,
	})
	r.reportSets(f) // after it: orders reach workers only that exist
	return nil
}
