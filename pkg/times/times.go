// Package times reads times that were stored, maybe by a clock that was ahead and is right by now.
package times

import "time"

// Skew is how far the clocks of two processes may differ.
const Skew = time.Minute

// IsAhead says whether a stored time was stored by a clock that was ahead.
func IsAhead(stored, now time.Time) bool { return stored.After(now.Add(Skew)) }

// Past is a stored time, and now in place of one that was stored by a clock that was ahead. Who waits from it on stores it again: else the
// wait begins with each look.
func Past(stored, now time.Time) time.Time {
	if IsAhead(stored, now) {
		return now
	}
	return stored
}
