// Package times reads stored times, which a clock may have written that was ahead and is right by now.
package times

import "time"

// Skew is how far the clocks of two processes may differ.
const Skew = time.Minute

// IsAhead says whether the clock that stored a time was ahead.
func IsAhead(stored, now time.Time) bool { return stored.After(now.Add(Skew)) }

// Past is a stored time, or now if the clock that stored it was ahead. A caller that waits from it on stores it again: otherwise the wait
// begins again with each read.
func Past(stored, now time.Time) time.Time {
	if IsAhead(stored, now) {
		return now
	}
	return stored
}
