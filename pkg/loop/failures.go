package loop

import (
	"sync"
	"time"

	"github.com/trellis-addons/trellis/pkg/backoff"
)

// Waits after failures in a row, for passes without a status that keeps the number.
const (
	firstRetry   = time.Second
	slowestRetry = 5 * time.Minute
)

// Failures counts failures in a row, by the name of the object. The zero value has none.
type Failures struct {
	mutex  sync.Mutex
	counts map[string]int32
}

// BackOff gives a failure without a wait of its own a wait that grows with the failures in a row.
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
	failure.After = backoff.After(f.counts[name], firstRetry, slowestRetry)
	return failure
}
