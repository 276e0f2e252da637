package loop

import (
	"sync"
	"time"
)

// Waits after failures in a row, for passes that have no status to keep their number in.
const (
	firstRetry   = time.Second
	slowestRetry = 5 * time.Minute
)

// Backoff is the wait before the next try after that many in a row: first, doubling up to most.
func Backoff(tries int32, first, most time.Duration) time.Duration {
	wait := first
	for ; tries > 1 && wait < most; tries-- {
		wait *= 2
	}
	return min(wait, most)
}

// Failures counts failures in a row, by the name of what is worked on. The zero value has none.
type Failures struct {
	mutex  sync.Mutex
	counts map[string]int32
}

// BackOff gives a failure without a wait of its own the wait that its number in a row earns.
func (f *Failures) BackOff(name string, outcome Outcome) Outcome {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	failure, failed := outcome.(RetryAt)
	if !failed || failure.After > 0 {
		delete(f.counts, name)
		return outcome
	}
	if f.counts == nil {
		f.counts = map[string]int32{}
	}
	f.counts[name]++
	failure.After = Backoff(f.counts[name], firstRetry, slowestRetry)
	return failure
}
