package loop_test

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-addons/trellis/pkg/loop"
)

// Red when a failure of one thing makes another wait, when success is no new beginning, or when a
// wait that a step chose is lost.
func TestFailuresInARowWaitLonger(t *testing.T) {
	var failures loop.Failures
	for _, pass := range []struct {
		why, name string
		outcome   loop.Outcome
		want      time.Duration
	}{
		{"the first", "a", loop.RetryAt{}, time.Second},
		{"the second", "a", loop.RetryAt{}, 2 * time.Second},
		{"another's first", "b", loop.RetryAt{}, time.Second},
		{"one that says when", "b", loop.RetryAt{After: time.Hour}, time.Hour},
		{"success", "a", loop.Done{Recheck: time.Minute}, time.Minute},
		{"the first after success", "a", loop.RetryAt{}, time.Second},
	} {
		if got := loop.RequeueAfter(failures.BackOff(pass.name, pass.outcome)); got != pass.want {
			t.Errorf("%s: %s, want %s", pass.why, got, pass.want)
		}
	}
}

// Red when a controller whose API server takes no write comes back later than all else that fails: client-go's own limit is a quarter of an
// hour.
func TestErrorsAreTriedEveryFiveMinutes(t *testing.T) {
	waits, request := loop.ErrorWaits(), reconcile.Request{}
	longest := time.Duration(0)
	for range 40 {
		longest = max(longest, waits.When(request))
	}
	if longest != 5*time.Minute {
		t.Errorf("the longest wait is %s", longest)
	}
}
