package fetchtest

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"syscall"
	"testing"
	"time"
)

// BoundedMemory fails the test if work needs more memory above idle than the limit, in bytes.
//
// Garbage must not count. So the runtime gets a memory limit below the tested one: it collects before that, and
// memory beyond it is alive.
func BoundedMemory(t testing.TB, limit int64, work func()) {
	t.Helper()
	debug.FreeOSMemory()
	idle := memoryInUse()
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(idle + limit*3/4))
	done, result := make(chan struct{}), make(chan int64)
	go func() {
		ticks := time.NewTicker(2 * time.Millisecond)
		defer ticks.Stop()
		peak := int64(0)
		for {
			peak = max(peak, memoryInUse())
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

// Allocated is the number of bytes that work allocates, garbage included.
func Allocated(work func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// memoryInUse is the runtime's memory from the system, without memory that it returned.
func memoryInUse() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64()) - int64(samples[1].Value.Uint64())
}

// CPUTime is this process's processor time so far, which other processes don't affect.
func CPUTime(t testing.TB) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
