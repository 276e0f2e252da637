package seed

import (
	"context"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-addons/trellis/pkg/backoff"
)

// A seed that is restored has an earlier state than the one that was listed, and says so to nobody. But no API server lives through it: a
// watch breaks. So one watch stands for all that is known of a seed. It begins before the seed is listed; once it broke,
// all is listed again.

// isListDue says whether all is to be listed again by now, since the watch broke.
func (w *worker) isListDue() bool {
	return w.session.broke.Load() && !w.Clock.Now().Before(w.listAgainAt) // which is zero before the break is noted
}

// noteBreak notes that the watch broke, and says how long to wait until all is listed again: the longer, the more often it
// breaks, as it does where something between ends what is quiet. The copies of sets are looked at meanwhile. A list that is waited
// for already comes no later for that.
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

// passSooner has the next pass begin as soon as all is to be listed again, where it is due later, and says when it is due then.
func (w *worker) passSooner(next clock.Timer, due time.Time) time.Time {
	if w.session == nil || !w.session.broke.Load() {
		return due // a pass has listed all since
	}
	wait := w.noteBreak()
	if !w.listAgainAt.Before(due) {
		return due
	}
	next.Reset(wait)
	return w.listAgainAt
}

// isAsBefore says whether what stood for all that is known of the seed still does: the watch, or that it can't be had. Then copies are
// asked for alone, and all else is as it was listed, until that is due.
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

// observe follows the seed and then lists it, so that nothing is known from before the watch.
func (w *worker) observe(ctx context.Context, want *Wanted) error {
	s := w.session
	s.stopFollowing()
	if s.broke.Swap(false) {
		s.copies.Forget() // a seed that went back may give a resourceVersion twice
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

// follow watches the copies of sets until the watch breaks, which is told, or another one follows.
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
		default: // it will be noted anyway
		}
	})
}

func (s *session) stopFollowing() {
	s.endWatch()
	s.following.Wait()
}
