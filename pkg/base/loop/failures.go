package loop

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-addons/trellis/pkg/base/backoff"
)

// Waits after failures in a row, for reconciliations without a status that stores the number. After an error, such as
// a status that can't be written, the next one begins after firstError: most then read at once the write of another
// client.
const (
	firstError   = 5 * time.Millisecond
	firstRetry   = time.Second
	slowestRetry = 5 * time.Minute
)

// ErrorWaits are the waits of a controller after errors: no failure waits longer than slowestRetry.
func ErrorWaits() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstError, slowestRetry)
}

// Failures counts failures in a row, by the name of the object. The zero value is empty.
type Failures struct {
	mutex  sync.Mutex
	counts map[string]int32
}

// BackOff gives a failure without its own wait a wait that grows with the failures in a row.
func (f *Failures) BackOff(name string, outcome *Outcome) *Outcome {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if !outcome.Is(RetryAt) || outcome.Recheck > 0 {
		delete(f.counts, name)
		return outcome
	}
	if f.counts == nil {
		f.counts = map[string]int32{}
	}
	f.counts[name]++
	return outcome.Within(backoff.After(f.counts[name], firstRetry, slowestRetry), RetryAt)
}
