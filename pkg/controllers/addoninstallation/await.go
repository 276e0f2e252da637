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

// firstAwait is the wait before an obstacle is read again; it doubles up to
// installer.SlowestRecheck.
const firstAwait = time.Second

// awaited is what an installation waits for that somebody has to do in the user cluster.
type awaited struct {
	obstacle apply.Obstacle
	// seen is how it was when it was in the way.
	seen string
	// reads counts those that found it in the way.
	reads int32
	// until is when everything is tried again, whatever is seen.
	until time.Time
}

// next waits for the next read.
func (a *awaited) next(now time.Time) loop.Outcome {
	wait := a.wait(now)
	if wait <= 0 {
		return loop.Checkpoint{AtOnce: true}
	}
	return loop.Waiting{Recheck: wait}
}

func (a *awaited) wait(now time.Time) time.Duration {
	return min(backoff.After(a.reads, firstAwait, installer.SlowestRecheck), a.until.Sub(now))
}

// await has what is in the way of the installation read soon, by one call each time: it is tried
// again once that changed, or when the outcome says so. Such passes write nothing, and read nothing
// of the seed past caches.
func (r *Reconciler) await(ctx context.Context, f *facts, outcome loop.Outcome) loop.Outcome {
	before := f.memory.awaited
	f.memory.awaited = nil
	waiting, ok := outcome.(loop.Waiting)
	if !ok || f.pass.Obstacle == nil || waiting.Condition != kubermaticv1.ConditionApplied || waiting.Recheck == 0 {
		return outcome
	}
	seen, err := f.pass.ObstacleState(ctx, *f.pass.Obstacle)
	if err != nil {
		return outcome
	}
	now := r.Clock.Now()
	next := &awaited{obstacle: *f.pass.Obstacle, seen: seen, reads: 1, until: now.Add(waiting.Recheck)}
	if before != nil && before.obstacle == next.obstacle {
		next.reads = before.reads + 1
	}
	f.memory.awaited = next
	waiting.Recheck = next.wait(now)
	return waiting
}

// isInTheWay says, where a pass comes for its time alone, whether what is waited for is as it was;
// then the pass ends here.
func (r *Reconciler) isInTheWay(ctx context.Context, request ctrl.Request, f *facts) bool {
	known := f.memory.awaited
	if known == nil || !r.queue.IsDue(request) || !r.Clock.Now().Before(known.until) {
		return false
	}
	if r.locate(ctx, f) != nil || f.cluster.Deleted || f.memory.awaited != known || r.connect(ctx, f) != nil {
		return false
	}
	seen, err := f.pass.ObstacleState(ctx, known.obstacle)
	if err != nil || seen == "" || seen != known.seen {
		return false
	}
	known.reads++
	return true
}
