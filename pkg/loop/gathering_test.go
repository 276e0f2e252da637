package loop_test

import (
	"testing"
	"time"

	"github.com/trellis-addons/trellis/pkg/loop"
)

// Red when a single change waits, when the pauses do not grow while changes keep coming, grow without end, or by changes alone; or when
// a change after a quiet time waits for what was before.
func TestChangesThatKeepComingAreGathered(t *testing.T) {
	t.Parallel()
	gathering := loop.Gathering{Longest: time.Second}
	now := time.Now()
	changed := func(why string, after, want time.Duration) {
		t.Helper()
		now = now.Add(after)
		if got := gathering.Pause(now); got != want {
			t.Errorf("%s: the pause is %s, want %s", why, got, want)
		}
	}
	const ms = time.Millisecond
	changed("the first", 0, 15*ms)
	changed("one before the pass", 5*ms, 15*ms)
	for _, want := range []time.Duration{30 * ms, 60 * ms, 120 * ms, 240 * ms, 480 * ms, 960 * ms, 1000 * ms, 1000 * ms} {
		gathering.Begin()
		changed("they keep coming", 900*ms, want)
	}
	changed("after a quiet time", 1001*ms, 15*ms)
	gathering.Begin()
	changed("two soon after each other", 200*ms, 30*ms)
}
