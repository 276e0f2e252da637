package loop

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-addons/trellis/pkg/backoff"
)

// Waits after failures in a row, for passes without a status that keeps the number. After firstError passes are tried again that end with
// an error, such as a status that can't be written: most find at once what another one wrote.
const (
	firstError   = 5 * time.Millisecond
	firstRetry   = time.Second
	slowestRetry = 5 * time.Minute
)

// ErrorWaits are the waits of a controller after errors: no failure waits longer than slowestRetry.
func ErrorWaits() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstError, slowestRetry)
}

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
