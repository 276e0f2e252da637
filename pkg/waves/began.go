package waves

import "time"

// hasty is how far the beginnings of revisions that follow each other at once may run ahead of the
// clock.
const hasty = 10 * time.Second

// Began is when a revision begins that follows one of which before is known; zero: there was none.
// The API keeps it in seconds and moves are stamped in nanoseconds (RFC 3339): it is the next full
// second, so that nothing that was moved for the revision before counts as moved for this one. The
// moves of this one are stamped no earlier. Two revisions don't begin in one second. One that began far
// ahead, by a clock that was wrong, is not followed.
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
