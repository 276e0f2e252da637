package addoninstallation

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/backoff"
	"github.com/trellis-addons/trellis/pkg/installer"
	"github.com/trellis-addons/trellis/pkg/loop"
)

// firstAwait is the wait before what is in the way is looked at again; it doubles up to installer.SlowestLook.
const firstAwait = time.Second

// awaited is what an installation waits for that somebody has to do in the user cluster.
type awaited struct {
	obstacle apply.Obstacle
	// seen is how it was when it was in the way.
	seen string
	// looks counts those that found it in the way.
	looks int32
	// until is when everything is tried again, whatever is seen.
	until time.Time
}

// next is how long to wait before the next look.
func (a *awaited) next() time.Duration {
	return max(min(backoff.After(a.looks, firstAwait, installer.SlowestLook), time.Until(a.until)), atOnce)
}

// await has what is in the way of the installation looked at soon, by one call a look: it is tried again once that changed, and not
// before the outcome says otherwise. Status and seed are left alone by such looks.
func (r *Reconciler) await(ctx context.Context, f *facts, outcome loop.Outcome) loop.Outcome {
	before := f.memory.awaited
	f.memory.awaited = nil
	waiting, ok := outcome.(loop.Waiting)
	if !ok || f.Obstacle == nil || waiting.Condition != kubermaticv1.ConditionApplied || waiting.Recheck == 0 {
		return outcome
	}
	seen, err := f.ObstacleState(ctx, *f.Obstacle)
	if err != nil {
		return outcome
	}
	now := &awaited{obstacle: *f.Obstacle, seen: seen, looks: 1, until: time.Now().Add(waiting.Recheck)}
	if before != nil && before.obstacle == now.obstacle {
		now.looks = before.looks + 1
	}
	f.memory.awaited = now
	waiting.Recheck = now.next()
	return waiting
}

// isInTheWay says, where a pass comes for its time alone, whether what is waited for is as it was; the rest of the pass is
// spared then.
func (r *Reconciler) isInTheWay(ctx context.Context, request ctrl.Request, f *facts) bool {
	known := f.memory.awaited
	if known == nil || !r.queue.IsDue(request) || !time.Now().Before(known.until) {
		return false
	}
	if r.locate(ctx, f) != nil || f.memory.awaited != known || r.connect(ctx, f) != nil {
		return false
	}
	seen, err := f.ObstacleState(ctx, known.obstacle)
	if err != nil || seen == "" || seen != known.seen {
		return false
	}
	known.looks++
	return true
}
