package fetchtest

import (
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

// BoundedMemory does work and fails the test if the process takes more memory for it than the limit, in bytes, above what
// it has when idle.
//
// What is dead but not collected yet must not count, or the figure would say when the collector ran. So the runtime gets
// a memory limit below the one that is tested: it collects before it goes beyond that, and what goes beyond is alive.
func BoundedMemory(t testing.TB, limit int64, work func()) {
	t.Helper()
	debug.FreeOSMemory()
	idle := taken()
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(idle + limit*3/4))
	done, result := make(chan struct{}), make(chan int64)
	go func() {
		ticks := time.NewTicker(2 * time.Millisecond)
		defer ticks.Stop()
		peak := int64(0)
		for {
			peak = max(peak, taken())
			select {
			case <-ticks.C:
			case <-done:
				result <- peak
				return
			}
		}
	}()
	work()
	close(done)
	if grown := <-result - idle; grown > limit {
		t.Errorf("it took %d MiB of memory, and %d MiB are allowed", grown>>20, limit>>20)
	}
}

// taken is what the runtime has from the system and did not give back.
func taken() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64()) - int64(samples[1].Value.Uint64())
}
