package backoff

import (
	"time"

	"golang.org/x/time/rate"
)

// writesAtOnce is how many writes may follow each other after a quiet time, so that the first steps of a change are visible at
// once.
const writesAtOnce = 3

// Writes limits how often one object is written: three times at once, then once per interval.
type Writes struct{ limiter *rate.Limiter }

// NewWrites allows one write per interval in the long run.
func NewWrites(interval time.Duration) Writes {
	return Writes{rate.NewLimiter(rate.Every(interval), writesAtOnce)}
}

// Wait is the time until the next write is allowed. If it is 0, the write is allowed, and counted.
func (w Writes) Wait(now time.Time) time.Duration {
	write := w.limiter.ReserveN(now, 1)
	wait := write.DelayFrom(now)
	if wait > 0 {
		write.CancelAt(now)
	}
	return wait
}
