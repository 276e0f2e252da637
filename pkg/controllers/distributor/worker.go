package distributor

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-addons/trellis/pkg/backoff"
	"github.com/trellis-addons/trellis/pkg/fence"
	"github.com/trellis-addons/trellis/pkg/remote"
)

// backoffLimit is the longest wait before a seed is tried again without being asked.
const backoffLimit = 5 * time.Minute

// jitter is the share by which a worker's waits are early or late.
const jitter = 0.05

// order is what a worker is to bring about, and where.
type order struct {
	target target
	wanted *wanted
}

// seedState is what a worker found, for the board.
type seedState struct {
	name string
	// reached is set when the seed could be asked. Otherwise problem says what is in the way.
	reached bool
	problem string
	// digests of the merged add-ons that the seed has; those of the last time it was reached.
	digests map[string]string
	// held says by name of a merged add-on which catalogue keeps it as it is.
	held map[string]string
	// keyFailed says what keeps the seed from having the key of marks; empty: nothing.
	keyFailed string
	// failedCatalogues and failedSecrets say by name what could not be written or deleted.
	failedCatalogues, failedSecrets map[string]string
	// unfetched is what the seed's installations say of sources; what they said when they were counted last.
	unfetched unfetched
	at        time.Time
}

// guard says whether a cluster is the one that a seed's name stands for. Its error is fit for status.
type guard func(ctx context.Context, to target, uid string) error

// worker serves one seed, in a goroutine of its own.
type worker struct {
	name      string
	platform  string
	namespace string
	resync    time.Duration
	clock     clock.Clock
	guard     guard
	fence     *fence.Fence
	report    func(seedState)
	usage     *usageBook
	budget    *remote.Budget
	// countEvery is the time between two counts of the seed's installations.
	countEvery time.Duration

	mutex sync.Mutex
	next  order
	wake  chan struct{}

	session   *session
	failed    int32
	last      map[string]string
	told      string
	countedAt time.Time
	unfetched unfetched
}

// ask gives the worker its order; one that it did not come to is replaced.
func (w *worker) ask(next order) {
	w.mutex.Lock()
	w.next = next
	w.mutex.Unlock()
	select {
	case w.wake <- struct{}{}:
	default: // It will wake up anyway.
	}
}

func (w *worker) order() order {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.next
}

// run works until the context ends.
func (w *worker) run(ctx context.Context) {
	defer w.drop()
	timer := w.clock.NewTimer(w.resync)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		case <-timer.C():
		}
		state := w.pass(ctx, w.order())
		if ctx.Err() != nil {
			return
		}
		w.log(ctx, state)
		w.report(state)
		if w.count(ctx) {
			state.unfetched = w.unfetched
			w.report(state)
		}
		timer.Stop()
		timer = w.clock.NewTimer(w.pause(state))
	}
}

// log tells operators when a seed is lost and when it is back.
func (w *worker) log(ctx context.Context, state seedState) {
	if state.problem == w.told {
		return
	}
	w.told = state.problem
	if state.problem == "" {
		log.FromContext(ctx).Info("seed is in reach", "seed", w.name)
		return
	}
	log.FromContext(ctx).Info("seed is out of reach", "seed", w.name, "problem", state.problem)
}

// pause is the time to the next pass without being asked.
func (w *worker) pause(state seedState) time.Duration {
	if state.reached && len(state.failedCatalogues)+len(state.failedSecrets)+len(state.keyFailed) == 0 {
		w.failed = 0
		return backoff.Around(min(w.resync, w.countEvery), jitter)
	}
	w.failed++
	return backoff.Around(backoff.After(w.failed, time.Second, backoffLimit), jitter)
}

// pass brings the seed to what is wanted, as far as it goes.
func (w *worker) pass(ctx context.Context, now order) seedState {
	state := seedState{name: w.name, digests: w.last, unfetched: w.unfetched}
	if problem := w.connect(ctx, now.target); problem != "" {
		w.drop()
		w.usage.lost(w.name)
		state.problem, state.at = problem, w.clock.Now()
		return state
	}
	with := w.session.marker(now.target.kkpVersion)
	todo := planSeed(now.wanted, with, w.session.picture)
	failed := w.session.carryOut(ctx, now.wanted, with, todo)
	state.keyFailed = w.session.bringKey(ctx)
	if failed.any() || state.keyFailed != "" {
		w.session.lookedAt = time.Time{}
	}
	w.last = w.session.picture.digests()
	state.reached, state.digests, state.at = true, w.last, w.clock.Now()
	state.held = todo.held
	state.failedCatalogues, state.failedSecrets = failed.catalogues, failed.secrets
	return state
}

// count brings the book of usage up to date, where its figures are not of this moment. A seed that does not let itself be
// counted is no seed in trouble. It says whether installations say something else of sources than before.
func (w *worker) count(ctx context.Context) (news bool) {
	if w.session == nil || w.clock.Since(w.countedAt) < w.countEvery*9/10 {
		return false
	}
	w.countedAt = w.clock.Now()
	counted, err := w.session.count(ctx, w.order().wanted)
	if err != nil {
		w.usage.lost(w.name)
		return false
	}
	w.usage.counted(w.name, counted.found, counted.others)
	news = !maps.Equal(w.unfetched, counted.unfetched)
	w.unfetched = counted.unfetched
	return news
}

// connect sees to it that there is a session with a picture that is not too old; else it says why there is none.
func (w *worker) connect(ctx context.Context, to target) (problem string) {
	if to.config == nil {
		return to.problem
	}
	if w.session != nil && w.session.id != to.configID {
		w.drop()
	}
	if w.session == nil {
		made, err := newSession(to, w.platform, w.namespace, w.budget, w.fence)
		if err != nil {
			return describe(err)
		}
		w.session = made
	}
	if w.clock.Since(w.session.lookedAt) < w.resync*9/10 {
		return ""
	}
	uid, err := w.session.uid(ctx)
	if err != nil {
		return describe(err)
	}
	if err := w.guard(ctx, to, string(uid)); err != nil {
		return err.Error()
	}
	if err := w.session.look(ctx, w.clock.Now()); err != nil {
		return describe(err)
	}
	return ""
}

func (w *worker) drop() {
	if w.session != nil {
		w.session.close()
	}
	w.session = nil
}
