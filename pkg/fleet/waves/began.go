package waves

import "time"

// hasty is how far the starts of revisions in quick succession may be ahead of the clock.
const hasty = 10 * time.Second

// Began is when a revision begins; before is the start of the previous one, zero if there was none. The API stores
// seconds and moves are stamped in nanoseconds (RFC 3339): the start is the next full second, so that no move for the
// previous revision counts for this one. The moves of this one are stamped no earlier. Two revisions don't begin in
// one second. A start far ahead, by a clock that was wrong, is ignored.
func Began(now, before time.Time) time.Time {
	at := now.Truncate(time.Second)
	if at.Before(now) {
		at = at.Add(time.Second)
	}
	if ahead := before.Sub(at); ahead >= 0 && ahead < hasty {
		return before.Add(time.Second)
	}
	return at
}
