package loop_test

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-addons/trellis/pkg/base/loop"
)

// TestFailuresInARowWaitLonger fails when a failure of one object delays another, when a success does not reset the
// count, or when a wait that a step chose is lost.
func TestFailuresInARowWaitLonger(t *testing.T) {
	var failures loop.Failures
	for _, pass := range []struct {
		why, name string
		outcome   *loop.Outcome
		want      time.Duration
	}{
		{"the first", "a", &loop.Outcome{Kind: loop.RetryAt}, time.Second},
		{"the second", "a", &loop.Outcome{Kind: loop.RetryAt}, 2 * time.Second},
		{"another's first", "b", &loop.Outcome{Kind: loop.RetryAt}, time.Second},
		{"one that says when", "b", &loop.Outcome{Kind: loop.RetryAt, Recheck: time.Hour}, time.Hour},
		{"success", "a", &loop.Outcome{Kind: loop.Done, Recheck: time.Minute}, time.Minute},
		{"the first after success", "a", &loop.Outcome{Kind: loop.RetryAt}, time.Second},
	} {
		if got := loop.RequeueAfter(failures.BackOff(pass.name, pass.outcome)); got != pass.want {
			t.Errorf("%s: %s, want %s", pass.why, got, pass.want)
		}
	}
}

// TestErrorsAreTriedEveryFiveMinutes fails when a controller whose API server accepts no write retries later than
// after other failures: client-go's own limit is a quarter of an hour.
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
