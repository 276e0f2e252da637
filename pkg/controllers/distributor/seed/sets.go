package seed

import (
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-addons/trellis/pkg/base/backoff"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/copies"
)

// gatherSets is how long changes of copies and orders are collected.
const gatherSets = 250 * time.Millisecond

// lookLimit is the longest delay until copies are checked again.
const lookLimit = time.Minute

// order replaces, or drops, the order for a set's copy, which is everything other than its content.
func (w *worker) order(set string, order copies.Order, ok bool) {
	w.mutex.Lock()
	before, had := w.orders[set]
	if ok {
		w.orders[set] = order
	} else {
		delete(w.orders, set)
	}
	w.mutex.Unlock()
	if had != ok || before != order {
		w.stirred()
	}
}

func (w *worker) stirred() {
	select {
	case w.stir <- struct{}{}:
	default: // it will check anyway
	}
}

func (w *worker) ordersNow() map[string]copies.Order {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return maps.Clone(w.orders)
}

// lookAfter is how long changes are collected, or how long a seed is not called after failed checks.
func (w *worker) lookAfter() time.Duration {
	if w.looksFailed == 0 {
		return gatherSets
	}
	return backoff.Around(backoff.After(w.looksFailed, time.Second, lookLimit), jitter)
}

// attend handles changed copies, and orders, without a whole reconciliation.
func (w *worker) attend(ctx context.Context) {
	now := w.task()
	if w.session == nil || w.session.id != now.target.ConfigID || w.session.setsProblem != "" || w.isListDue() {
		return // the next reconciliation connects, requests sets, or lists everything, when it is due
	}
	ctx, span := loop.BeginReconcile(ctx, "distributor-copies", "", w.name)
	defer span.End()
	unfollowed := !w.session.followed.Load() && len(now.wanted.Sets) > 0
	failed, problem := w.carryOutSets(ctx, now.wanted, false)
	if ctx.Err() != nil {
		return
	}
	w.reportSets(State{Reached: true, FailedSets: failed, setsProblem: problem, At: w.Clock.Now()})
	switch whole := len(failed)+len(problem) == 0; {
	case whole && !unfollowed:
		w.looksFailed = 0
	default:
		w.looksFailed++
		if !whole {
			w.stirred()
		}
	}
}

// carryOutSets updates the copies of sets. The copies are listed if there are sets, or Secrets that copies may need.
// The failures, by name, and the problem are safe for status.
func (w *worker) carryOutSets(ctx context.Context, want *Wanted, needed bool) (failed map[string]string, problem string) {
	s := w.session
	if len(want.Sets) == 0 && !needed {
		return nil, ""
	}
	if !s.copies.Listed() || !s.followed.Load() {
		if err := w.listSets(ctx); err != nil {
			if isAway(err) {
				s.observedAt = time.Time{} // the next reconciliation handles it, soon
			}
			return nil, Describe(err)
		}
	}
	failed = map[string]string{}
	fail := func(name string, err error) { failed[name] = Describe(err) }
	s.copies.Read(ctx, want.Sets, fail)
	s.copies.CarryOut(ctx, want.Sets, w.ordersNow(), fail)
	return failed, ""
}

// reportSets reports the state of all copies.
func (w *worker) reportSets(state State) {
	found := copies.State{Seed: w.name, Reached: state.Reached, Problem: state.Problem, At: state.At}
	if state.setsProblem != "" {
		found.Reached, found.Problem = false, state.setsProblem
	}
	if found.Reached && w.session.copies.Listed() {
		want := w.task().wanted
		found.Rows = w.session.copies.Rows(want.Sets, w.ordersNow(), want.digests(w.session.observed), state.FailedSets)
	}
	w.ReportSets(found)
}

// removeValues removes Secrets of values that no set names any more, once the copies of sets are as they should be
// and no other copy may need them.
func (s *session) removeValues(ctx context.Context, want *Wanted, todo plan, failed *failures, whole bool) {
	if len(todo.removeValues) == 0 || !whole || !s.copies.Listed() || s.copies.Unwanted(want.Sets) {
		return
	}
	s.each(ctx, todo.removeValues, failed.secret, func(ctx context.Context, name string) error {
		return s.remove(ctx, &corev1.Secret{ObjectMeta: s.named(name)}, s.observed.secrets)
	})
}
