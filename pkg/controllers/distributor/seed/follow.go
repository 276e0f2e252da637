package seed

import (
	"context"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-addons/trellis/pkg/base/backoff"
)

// A restored seed has an earlier state than the one that was listed, and does not report that. But no API server
// survives a restore: a watch breaks. So one watch shows that all memory of a seed is valid. It begins before the
// seed is listed; once it broke, everything is listed again.

// isListDue says whether everything must be listed again now, since the watch broke.
func (w *worker) isListDue() bool {
	return w.session.broke.Load() && !w.Clock.Now().Before(w.listAgainAt) // which is zero before the break is noted
}

// noteBreak notes that the watch broke, and returns the delay until everything is listed again: it grows with the
// number of breaks, since a proxy may end quiet connections. The copies of sets are checked meanwhile. A further
// break does not delay a list that is already due.
func (w *worker) noteBreak() time.Duration {
	now := w.Clock.Now()
	if !w.listAgainAt.IsZero() {
		w.stirred()
		return max(w.listAgainAt.Sub(now), 0)
	}
	if now.Sub(w.brokeAt) > 2*backoffLimit {
		w.breaks = 0
	}
	w.breaks++
	w.brokeAt = now
	wait := gatherSets
	if w.breaks > 1 {
		wait = backoff.After(w.breaks-1, time.Second, backoffLimit)
		w.stirred()
	}
	w.listAgainAt = now.Add(wait)
	return wait
}

// reconcileSooner moves the next reconciliation forward to when everything must be listed again, and returns its new time.
func (w *worker) reconcileSooner(next clock.Timer, due time.Time) time.Time {
	if w.session == nil || !w.session.broke.Load() {
		return due // a reconciliation has listed everything since
	}
	wait := w.noteBreak()
	if !w.listAgainAt.Before(due) {
		return due
	}
	next.Reset(wait)
	return w.listAgainAt
}

// isAsBefore says whether the seed counts as unchanged: it has a watch, or it answers and still refuses to list
// copies. Then only copies are requested, and everything else stays as listed, until a list is due.
func (w *worker) isAsBefore(ctx context.Context, want *Wanted) bool {
	s := w.session
	if s.setsProblem == "" {
		return true
	}
	if len(want.Sets) == 0 {
		return false
	}
	err := s.copies.List(ctx)
	if err == nil {
		return false
	}
	s.setsProblem = Describe(err)
	return !isAway(err)
}

// observe follows the seed and then lists it, so that no memory is older than the watch.
func (w *worker) observe(ctx context.Context, want *Wanted) error {
	s := w.session
	s.stopFollowing()
	if s.broke.Swap(false) {
		s.copies.Forget() // a restored seed may use a resourceVersion twice
	}
	w.listAgainAt, s.setsProblem = time.Time{}, ""
	s.copies.Unlist()
	if len(want.Sets) == 0 {
		w.follow(ctx)
	} else if err := w.listSets(ctx); err != nil {
		s.setsProblem = Describe(err)
	}
	return s.observe(ctx, w.Clock.Now())
}

// listSets lists the copies of sets, and follows them from there.
func (w *worker) listSets(ctx context.Context) error {
	if err := w.session.copies.List(ctx); err != nil {
		return err
	}
	w.follow(ctx)
	return nil
}

// follow watches the copies of sets until the watch breaks, which is reported, or another one follows.
func (w *worker) follow(ctx context.Context) {
	s := w.session
	s.stopFollowing()
	ctx, end := context.WithCancel(ctx)
	s.endWatch = end
	s.followed.Store(true)
	watch := s.copies.Follow(s.remote, w.stirred)
	s.following.Go(func() {
		defer end()
		err := watch(ctx)
		if err == nil || ctx.Err() != nil {
			s.followed.Store(false)
			return
		}
		log.FromContext(ctx).Info("the watch of AddonSets on a seed broke", "seed", w.name, "problem", Describe(err))
		s.broke.Store(true)
		s.followed.Store(false)
		select {
		case w.breaking <- struct{}{}:
		default: // a report is already pending
		}
	})
}

func (s *session) stopFollowing() {
	s.endWatch()
	s.following.Wait()
}
