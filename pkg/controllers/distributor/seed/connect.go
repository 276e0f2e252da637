package seed

import (
	"context"
	"time"
)

// contact is the result of connecting to a seed.
type contact struct {
	// problem says why it was not reached, or why nothing may be written; away that nothing answered. setsProblem is why
	// copies of sets can't be listed.
	problem, setsProblem string
	away                 bool
}

// connect creates a session and lists the seed, if that is due.
func (w *worker) connect(ctx context.Context, now task) contact {
	to := now.target
	if to.Config == nil {
		return contact{problem: to.Problem}
	}
	if w.session != nil && w.session.id != to.ConfigID {
		w.disconnect()
	}
	if w.session == nil {
		made, err := newSession(to, w.Platform, w.Namespace, w.budget, w.Fence)
		if err != nil {
			return contact{problem: Describe(err)}
		}
		w.session = made
	}
	if w.Clock.Since(w.session.observedAt) < w.Resync*9/10 && !w.isListDue() && w.isAsBefore(ctx, now.wanted) {
		return contact{setsProblem: w.session.setsProblem}
	}
	uid, err := w.session.uid(ctx)
	if err != nil {
		return contact{problem: Describe(err), away: isAway(err)}
	}
	if err := w.Identities.confirm(ctx, to, string(uid)); err != nil {
		return contact{problem: err.Error()}
	}
	if err := w.observe(ctx, now.wanted); err != nil {
		return contact{problem: Describe(err), away: isAway(err)}
	}
	return contact{setsProblem: w.session.setsProblem}
}

func (w *worker) disconnect() {
	if w.session != nil {
		w.session.stopFollowing()
		w.session.remote.Close()
	}
	w.session, w.listAgainAt = nil, time.Time{}
}
