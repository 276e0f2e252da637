package store

import (
	"cmp"
	"crypto/sha256"
	"time"

	"github.com/trellis-addons/trellis/pkg/base/backoff"
	"github.com/trellis-addons/trellis/pkg/fetch"
)

// entryKey has the owner too: a check waits in its owner's turn, and the early request of one owner must not make
// others wait in that turn.
type entryKey struct {
	reference [sha256.Size]byte
	owner     string
}

// flight is a RevisionKey: content that several references of one user can share.
type flight [sha256.Size]byte

type entry struct {
	key       entryKey
	reference fetch.Reference
	host      string

	revision fetch.Revision // of the last successful check
	digest   string         // of its content; "" if it was never fetched
	checked  time.Time      // when that check was
	// confirmed: this process made that check
	confirmed bool
	due       time.Time // of the next check
	asked     time.Time // time of the last Get

	err      error // of the last check or fetch
	failures int   // in a row
	must     bool  // a check was requested; Get waits for it
	again    bool  // a check was requested while one ran, which may have its answer already
	recalls  bool  // the record of an earlier process must still be read
	awaited  bool  // a Get returned ErrPending or an error

	queued, running bool
	waiters         map[string]waiter // by subscriber
}

type waiter struct {
	wake     func()
	until    time.Time
	interval time.Duration // that it requested; 0: the store's
}

func (e *entry) ask(now time.Time, subscriber string, wake func(), interval time.Duration) {
	e.asked = now
	if wake == nil {
		return
	}
	e.waiters[subscriber] = waiter{wake: wake, until: now.Add(rememberedFor), interval: interval}
}

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

// bringForward moves the next check forward if an interval was shortened, except after a failure.
func (e *entry) bringForward(now time.Time, interval time.Duration) {
	if e.err == nil && !e.fixed() && e.due.After(now.Add(interval*11/10)) {
		e.due = now.Add(backoff.Around(interval, jitter))
	}
}

// toWake returns the functions to call, and removes expired ones.
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

// fresh: the last check counts while a caller needs it; a check of an earlier process counts for two intervals.
func (e *entry) fresh(now time.Time, interval time.Duration) bool {
	if e.digest == "" || e.checked.IsZero() {
		return false
	}
	return e.fixed() || e.confirmed || !e.checked.After(now.Add(interval)) && now.Sub(e.checked) < 2*interval
}

func (e *entry) fixed() bool { return e.reference.Location.IsFixed() }

func (e *entry) isDue(now time.Time) bool {
	return !e.queued && !e.running && !e.due.After(now) && now.Sub(e.asked) <= rememberedFor
}
