package seed

import (
	"context"
	"maps"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-addons/trellis/pkg/base/backoff"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/remote"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/copies"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/usage"
)

const (
	// backoffLimit is the longest delay before a seed is tried again.
	backoffLimit = 5 * time.Minute
	// awayLimit is the same if nothing answers, or did not a moment ago: the seed gets missing objects within seconds of its return.
	awayLimit = 10 * time.Second
	// comingBack is how long a starting API server may answer with failures.
	comingBack = time.Minute
	// jitter is the fraction by which a worker's delays vary.
	jitter = 0.05
)

type task struct {
	target Target
	wanted *Wanted
}

// worker serves one seed, in its own goroutine.
type worker struct {
	Options
	name   string
	budget *remote.Budget

	mutex sync.Mutex
	next  task
	wake  chan struct{}
	// stir says that copies of sets changed there, or orders for them here.
	stir   chan struct{}
	orders map[string]copies.Order
	// looksFailed counts consecutive failed checks of copies.
	looksFailed int32
	// breaking says that the watch of the seed broke. breaks counts the breaks, brokeAt is the time of the last, and
	// listAgainAt when the seed must be listed because of it; zero: it was.
	breaking             chan struct{}
	breaks               int32
	brokeAt, listAgainAt time.Time

	session *session
	failed  int32
	// awayAt is when the seed last did not answer.
	awayAt    time.Time
	last      map[string]string
	logged    string
	countedAt time.Time
	unfetched usage.Unfetched
	checks    *catalogue.SourceChecks
	// checksProblem is the problem with them that was last logged.
	checksProblem string
}

// assign replaces the worker's next task.
func (w *worker) assign(next task) {
	w.mutex.Lock()
	w.next = next
	maps.DeleteFunc(w.orders, func(set string, _ copies.Order) bool { return next.wanted.Sets[set] == nil })
	w.mutex.Unlock()
	select {
	case w.wake <- struct{}{}:
	default: // it will wake up anyway
	}
}

func (w *worker) task() task {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.next
}

func (w *worker) run(ctx context.Context) {
	defer w.disconnect()
	timer, due := w.Clock.NewTimer(w.Resync), w.Clock.Now().Add(w.Resync)
	defer timer.Stop()
	look := w.Clock.NewTimer(w.Resync)
	defer look.Stop()
	looking := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.stir:
			if !looking { // continuous changes don't delay the check
				looking = true
				look.Reset(w.lookAfter())
			}
			continue
		case <-look.C():
			looking = false
			w.attend(ctx)
			continue
		case <-w.breaking:
			due = w.reconcileSooner(timer, due)
			continue
		case <-w.wake:
		case <-timer.C():
		}
		state := w.reconcile(ctx, w.task())
		if ctx.Err() != nil {
			return
		}
		w.log(ctx, state)
		w.Report(state)
		w.reportSets(state)
		if w.count(ctx) && ctx.Err() == nil {
			state.Unfetched, state.Checks = w.unfetched, w.checks
			w.Report(state)
		}
		if w.Checkers.tried(w.name) && ctx.Err() == nil {
			w.Report(state)
		}
		pause := w.untilNext(state)
		due = w.Clock.Now().Add(pause)
		timer.Reset(pause)
	}
}

// log reports when a seed is lost and when it is back.
func (w *worker) log(ctx context.Context, state State) {
	if state.Problem == w.logged {
		return
	}
	w.logged = state.Problem
	if state.Problem == "" {
		log.FromContext(ctx).Info("seed is reachable", "seed", w.name)
		return
	}
	log.FromContext(ctx).Info("seed is unreachable", "seed", w.name, "problem", state.Problem)
}

// untilNext is the delay until the next reconciliation, which lists the seed again if its watch broke during or before this one.
func (w *worker) untilNext(state State) time.Duration {
	pause := w.pause(state)
	if w.listAgainAt.IsZero() {
		return pause
	}
	return min(pause, max(gatherSets, w.listAgainAt.Sub(w.Clock.Now())))
}

// pause is the delay until the next reconciliation, by the result of this one.
func (w *worker) pause(state State) time.Duration {
	if state.isWhole() {
		w.failed = 0
		return backoff.Around(min(w.Resync, w.CountEvery), jitter)
	}
	w.failed++
	limit := backoffLimit
	if state.away {
		w.awayAt = w.Clock.Now()
	}
	if !w.awayAt.IsZero() && w.Clock.Since(w.awayAt) < comingBack {
		limit = awayLimit
	}
	return backoff.Around(backoff.After(w.failed, time.Second, limit), jitter)
}

// reconcile writes the wanted objects to the seed, as far as possible.
func (w *worker) reconcile(ctx context.Context, now task) State {
	ctx, span := loop.BeginReconcile(ctx, "distributor-seed", "", w.name)
	defer span.End()
	state := State{Name: w.name, Digests: w.last, Unfetched: w.unfetched, Checks: w.checks}
	reached := w.connect(ctx, now)
	if reached.problem != "" {
		w.disconnect()
		w.Usage.Lost(w.name)
		state.Problem, state.away, state.At = reached.problem, reached.away, w.Clock.Now()
		span.Fail()
		return state
	}
	with := w.session.marker(now.target.KKPVersion)
	todo := planSeed(now.wanted, with, w.session.observed)
	failed := w.session.carryOut(ctx, now.wanted, with, todo)
	state.setsProblem = reached.setsProblem
	if state.setsProblem == "" {
		state.FailedSets, state.setsProblem = w.carryOutSets(ctx, now.wanted, len(todo.removeValues) > 0)
	}
	w.session.removeValues(ctx, now.wanted, todo, failed, len(state.FailedSets)+len(state.setsProblem) == 0)
	state.KeyFailed = w.session.writeKey(ctx, now.wanted)
	if failed.any() || state.KeyFailed != "" {
		w.session.observedAt = time.Time{}
	}
	w.last = w.session.observed.digests()
	state.Reached, state.Digests, state.At = true, w.last, w.Clock.Now()
	state.Held = todo.held
	state.FailedCatalogues, state.FailedSecrets = failed.catalogues, failed.secrets
	return state
}

// count counts the seed's installations and reads its checks of sources, at most every CountEvery, and says whether
// their reports about sources changed. A failure here is no failure of the seed.
func (w *worker) count(ctx context.Context) (changed bool) {
	if w.session == nil || w.Clock.Since(w.countedAt) < w.CountEvery*9/10 {
		return false
	}
	w.countedAt = w.Clock.Now()
	ctx, span := loop.BeginReconcile(ctx, "distributor-count", "", w.name)
	defer span.End()
	wanted := w.task().wanted
	counted, err := usage.Read(ctx, w.session.counter, wanted.Addons, wanted.Leave)
	if err != nil {
		w.Usage.Lost(w.name)
		span.Fail()
		return w.readChecks(ctx)
	}
	w.Usage.Counted(w.name, counted)
	changed = !maps.Equal(w.unfetched, counted.Unfetched)
	w.unfetched = counted.Unfetched
	return w.readChecks(ctx) || changed
}
