package store

import (
	"cmp"
	"crypto/sha256"
	"time"

	"github.com/trellis-addons/trellis/pkg/backoff"
	"github.com/trellis-addons/trellis/pkg/fetch"
)

// entryKey is the Key of a reference.
type entryKey [sha256.Size]byte

// flight is what one fetch is for, a RevisionKey: a revision of a source and path, for one user. Several references can share it, such
// as a branch and a tag that name the same commit.
type flight [sha256.Size]byte

// entry is what is known of a reference.
type entry struct {
	key       entryKey
	reference fetch.Reference
	host      string

	revision fetch.Revision // of the last look that succeeded
	digest   string         // of its content; "" while it was never fetched
	looked   time.Time      // when that look was
	// confirmed: it was a look of this process
	confirmed bool
	due       time.Time // of the next look
	asked     time.Time // when somebody asked last

	err      error // of the last look or fetch
	failures int   // in a row
	must     bool  // a look was asked for; nothing is handed out before it is over
	recalls  bool  // what an earlier process knew is still to be read
	awaited  bool  // somebody was told that it is on its way, or got an error

	queued, running bool
	waiters         map[string]waiter // by subscriber
}

type waiter struct {
	wake     func()
	until    time.Time
	interval time.Duration // that it asked for; 0: the store's
}

func (e *entry) ask(now time.Time, subscriber string, wake func(), interval time.Duration) {
	e.asked = now
	if wake == nil {
		return
	}
	e.waiters[subscriber] = waiter{wake: wake, until: now.Add(rememberedFor), interval: interval}
}

// interval is the shortest of those that were asked for.
func (e *entry) interval(now time.Time, own time.Duration) time.Duration {
	shortest := time.Duration(0)
	for _, waiter := range e.waiters {
		wanted := cmp.Or(waiter.interval, own)
		if waiter.until.After(now) && (shortest == 0 || wanted < shortest) {
			shortest = wanted
		}
	}
	return cmp.Or(shortest, own)
}

// bringForward brings the next look forward where an interval was shortened. One after a failure has a time of its own.
func (e *entry) bringForward(now time.Time, interval time.Duration) {
	if e.err == nil && !e.fixed() && e.due.After(now.Add(interval*11/10)) {
		e.due = now.Add(backoff.Around(interval, jitter))
	}
}

// toWake gives those to wake, and forgets those who stopped asking.
func (e *entry) toWake(now time.Time) []func() {
	wakes := []func(){}
	for subscriber, waiter := range e.waiters {
		if !waiter.until.After(now) {
			delete(e.waiters, subscriber)
			continue
		}
		wakes = append(wakes, waiter.wake)
	}
	e.awaited = false
	return wakes
}

// fresh: while somebody asks, looks follow each other, and the last one is as good as it gets. One of an earlier process is
// good until the one after the next should have been.
func (e *entry) fresh(now time.Time, interval time.Duration) bool {
	if e.digest == "" || e.looked.IsZero() {
		return false
	}
	return e.fixed() || e.confirmed || !e.looked.After(now.Add(interval)) && now.Sub(e.looked) < 2*interval
}

func (e *entry) fixed() bool { return e.reference.Location.IsFixed() }

func (e *entry) isDue(now time.Time) bool {
	return !e.queued && !e.running && !e.due.After(now) && now.Sub(e.asked) <= rememberedFor
}
