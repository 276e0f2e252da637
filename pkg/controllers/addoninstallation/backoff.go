package addoninstallation

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-addons/trellis/pkg/loop"
)

// slowestRetry is the longest wait between two attempts of what keeps failing.
const slowestRetry = 5 * time.Minute

// backOff gives a failure without a wait of its own the wait that its number in a row earns, and tells both in the status.
// Waiting for something is no failure.
func (f *facts) backOff(outcome loop.Outcome) loop.Outcome {
	state := &f.installation.Status
	retry, failed := outcome.(loop.RetryAt)
	if !failed || retry.After > 0 {
		f.memory.failures, state.Failures, state.NextAttempt = 0, f.attempts, nil
		if f.attempts > 0 {
			next := metav1.NewTime(f.nextAttempt)
			state.NextAttempt = &next
		}
		return outcome
	}
	f.memory.failures++
	retry.After = loop.Backoff(f.memory.failures, time.Second, slowestRetry)
	next := metav1.NewTime(time.Now().Add(retry.After))
	state.Failures, state.NextAttempt = f.memory.failures, &next
	return retry
}
