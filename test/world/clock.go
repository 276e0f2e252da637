package world

import (
	"context"
	"sync"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

const tick = 10 * time.Millisecond

// RunningClock runs like the real clock until the end of the test, and a test may set it forward.
func RunningClock(t testing.TB) *clocktesting.FakeClock {
	t.Helper()
	made := clocktesting.NewFakeClock(time.Now())
	t.Cleanup(everyTick(func(passed time.Duration) { made.Step(passed) }))
	return made
}

// Hurry makes a clock run so many times as fast during a wait.
func Hurry(clock *clocktesting.FakeClock, times int, wait func()) {
	defer everyTick(func(passed time.Duration) { clock.Step(passed * time.Duration(times-1)) })()
	wait()
}

// everyTick repeatedly calls do with the passed time, until the returned function is called.
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
