package world

import (
	"context"
	"sync"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

const tick = 10 * time.Millisecond

// RunningClock goes on like the real clock until the end of the test, and a test may set it forward.
func RunningClock(t testing.TB) *clocktesting.FakeClock {
	t.Helper()
	made := clocktesting.NewFakeClock(time.Now())
	t.Cleanup(everyTick(func(passed time.Duration) { made.Step(passed) }))
	return made
}

// Hurry has a clock go so many times as fast while something is waited for.
func Hurry(clock *clocktesting.FakeClock, times int, wait func()) {
	defer everyTick(func(passed time.Duration) { clock.Step(passed * time.Duration(times-1)) })()
	wait()
}

// everyTick says again and again how much time has passed, until the returned function is called.
func everyTick(do func(passed time.Duration)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		last, ticks := time.Now(), time.NewTicker(tick)
		defer ticks.Stop()
		for {
			select {
			case now := <-ticks.C:
				do(now.Sub(last))
				last = now
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}
