package seed

import (
	"context"
	"maps"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-addons/trellis/pkg/backoff"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/copies"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/usage"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/remote"
)

const (
	// backoffLimit is the longest wait before a seed is tried again.
	backoffLimit = 5 * time.Minute
	// jitter is the share by which a worker's waits are early or late.
	jitter = 0.05
)

type task struct {
	target Target
	wanted *Wanted
}

// worker serves one seed, in a goroutine of its own.
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
	// looksFailed counts looks at copies that failed, one after the other.
	looksFailed int32

	session   *session
	failed    int32
	last      map[string]string
	logged    string
	countedAt time.Time
	unfetched usage.Unfetched
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
	timer := w.Clock.NewTimer(w.Resync)
	defer timer.Stop()
	look := w.Clock.NewTimer(w.Resync)
	defer look.Stop()
	looking := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.stir:
			if !looking { // what goes on changing is looked at all the same
				looking = true
				look.Reset(w.lookAfter())
			}
			continue
		case <-look.C():
			looking = false
			w.attend(ctx)
			continue
		case <-w.wake:
		case <-timer.C():
		}
		state := w.pass(ctx, w.task())
		if ctx.Err() != nil {
			return
		}
		w.log(ctx, state)
		w.Report(state)
		w.reportSets(state)
		if w.count(ctx) && ctx.Err() == nil {
			state.Unfetched = w.unfetched
			w.Report(state)
		}
		timer.Stop()
		timer = w.Clock.NewTimer(w.pause(state))
	}
}

// log reports when a seed is lost and when it is back.
func (w *worker) log(ctx context.Context, state State) {
	if state.Problem == w.logged {
		return
	}
	w.logged = state.Problem
	if state.Problem == "" {
		log.FromContext(ctx).Info("seed is in reach", "seed", w.name)
		return
	}
	log.FromContext(ctx).Info("seed is out of reach", "seed", w.name, "problem", state.Problem)
}

// pause is the time to the next pass.
func (w *worker) pause(state State) time.Duration {
	if state.isWhole() {
		w.failed = 0
		return backoff.Around(min(w.Resync, w.CountEvery), jitter)
	}
	w.failed++
	return backoff.Around(backoff.After(w.failed, time.Second, backoffLimit), jitter)
}

// pass brings the seed to what is wanted, as far as possible.
func (w *worker) pass(ctx context.Context, now task) State {
	ctx, span := loop.BeginPass(ctx, "distributor-seed", "", w.name)
	defer span.End()
	state := State{Name: w.name, Digests: w.last, Unfetched: w.unfetched}
	if problem := w.connect(ctx, now.target); problem != "" {
		w.disconnect()
		w.Usage.Lost(w.name)
		state.Problem, state.At = problem, w.Clock.Now()
		span.Fail()
		return state
	}
	with := w.session.marker(now.target.KKPVersion)
	todo := planSeed(now.wanted, with, w.session.observed)
	failed := w.session.carryOut(ctx, now.wanted, with, todo)
	state.FailedSets, state.setsProblem = w.carryOutSets(ctx, now.wanted, len(todo.removeValues) > 0)
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

// count counts the seed's installations, at most every CountEvery, and says whether they say
// something new of sources. To fail here is no failure of the seed.
func (w *worker) count(ctx context.Context) (changed bool) {
	if w.session == nil || w.Clock.Since(w.countedAt) < w.CountEvery*9/10 {
		return false
	}
	w.countedAt = w.Clock.Now()
	ctx, span := loop.BeginPass(ctx, "distributor-count", "", w.name)
	defer span.End()
	wanted := w.task().wanted
	counted, err := usage.Read(ctx, w.session.counter, wanted.Addons, wanted.Leave)
	if err != nil {
		w.Usage.Lost(w.name)
		span.Fail()
		return false
	}
	w.Usage.Counted(w.name, counted)
	changed = !maps.Equal(w.unfetched, counted.Unfetched)
	w.unfetched = counted.Unfetched
	return changed
}

// connect makes a session and lists the seed, where that is due; the problem says why it failed.
func (w *worker) connect(ctx context.Context, to Target) (problem string) {
	if to.Config == nil {
		return to.Problem
	}
	if w.session != nil && w.session.id != to.ConfigID {
		w.disconnect()
	}
	if w.session == nil {
		made, err := newSession(to, w.Platform, w.Namespace, w.budget, w.Fence)
		if err != nil {
			return Describe(err)
		}
		w.session = made
	}
	if w.Clock.Since(w.session.observedAt) < w.Resync*9/10 {
		return ""
	}
	uid, err := w.session.uid(ctx)
	if err != nil {
		return Describe(err)
	}
	if err := w.Identities.confirm(ctx, to, string(uid)); err != nil {
		return err.Error()
	}
	if err := w.session.observe(ctx, w.Clock.Now()); err != nil {
		return Describe(err)
	}
	return ""
}

func (w *worker) disconnect() {
	if w.session != nil {
		w.session.endWatch()
		w.session.following.Wait()
		w.session.remote.Close()
	}
	w.session = nil
}
