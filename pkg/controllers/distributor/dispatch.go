package distributor

import (
	"context"

	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/seed"
)

func (r *Reconciler) dispatch(ctx context.Context, f *facts) *loop.Outcome {
	held := r.returning(f)
	for _, reading := range f.readings {
		if reading.isHeld() {
			held[reading.object.Name] = true
		}
	}
	r.workers.Assign(ctx, f.targets, &seed.Wanted{
		Addons: f.merged.Addons, Refused: f.merged.Refused, Secrets: f.secrets, Held: held, Leave: f.leave, Sets: f.sets,
	})
	r.reportSets(f) // last: only existing workers get orders
	return nil
}
