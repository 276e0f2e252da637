package addoninstallation

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/backoff"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/pkg/install/installer"
)

// firstAwait is the wait before an obstacle is read again; it doubles up to
// installer.SlowestRecheck.
const firstAwait = time.Second

// awaited is an obstacle in the user cluster that a user has to remove.
type awaited struct {
	obstacle apply.Obstacle
	// seen is the state of the obstacle when it was found.
	seen string
	// reads counts the reads that found the obstacle.
	reads int32
	// until is when everything is tried again, regardless of the obstacle.
	until time.Time
}

// next is the outcome that waits for the next read.
func (a *awaited) next(now time.Time) *loop.Outcome {
	wait := a.wait(now)
	if wait <= 0 {
		return &loop.Outcome{Kind: loop.Checkpoint, Recheck: loop.AtOnce}
	}
	return &loop.Outcome{Kind: loop.Waiting, Recheck: wait}
}

func (a *awaited) wait(now time.Time) time.Duration {
	return min(backoff.After(a.reads, firstAwait, installer.SlowestRecheck), a.until.Sub(now))
}

// await schedules reads of the obstacle, one call each. The installation is tried again once the obstacle changed, or
// when the outcome says so. Such reconciliations write nothing, and read nothing of the seed past caches.
func (r *Reconciler) await(ctx context.Context, f *facts, outcome *loop.Outcome) *loop.Outcome {
	before := f.memory.awaited
	f.memory.awaited = nil
	isForApply := outcome.Is(loop.Waiting) && outcome.Condition == kubermaticv1.ConditionApplied
	if !isForApply || f.run.Obstacle == nil || outcome.Recheck == 0 {
		return outcome
	}
	seen, err := f.run.ObstacleState(ctx, *f.run.Obstacle)
	if err != nil {
		return outcome
	}
	now := r.Clock.Now()
	next := &awaited{obstacle: *f.run.Obstacle, seen: seen, reads: 1, until: now.Add(outcome.Recheck)}
	if before != nil && before.obstacle == next.obstacle {
		next.reads = before.reads + 1
	}
	f.memory.awaited = next
	return outcome.Within(next.wait(now), loop.Waiting)
}

// isInTheWay says, in a reconciliation that only the timer started, whether the obstacle is unchanged; the
// reconciliation then ends here.
func (r *Reconciler) isInTheWay(ctx context.Context, request ctrl.Request, f *facts) bool {
	known := f.memory.awaited
	if known == nil || !r.queue.IsDue(request) || !r.Clock.Now().Before(known.until) {
		return false
	}
	if r.locate(ctx, f) != nil || f.cluster.Deleted || f.memory.awaited != known || r.connect(ctx, f) != nil {
		return false
	}
	seen, err := f.run.ObstacleState(ctx, known.obstacle)
	if err != nil || seen == "" || seen != known.seen {
		return false
	}
	known.reads++
	return true
}
