package loop

import (
	"sync"
	"time"

	"github.com/trellis-addons/trellis/pkg/backoff"
)

// Waits after failures in a row, for passes that have no status to keep their number in.
const (
	firstRetry   = time.Second
	slowestRetry = 5 * time.Minute
)

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
	failure.After = backoff.After(f.counts[name], firstRetry, slowestRetry)
	return failure
}
