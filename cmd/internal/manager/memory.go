package manager

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// growth is how much a small heap may grow between two collections, in percent of the live bytes: twice Go's
	// default. That halves the time that collections take, and costs memory.
	growth = 200
	// maxGrowth bounds the growth of a heap over 24 MiB: by 48 MiB, or by the live bytes less 48 MiB, whichever is more. A heap
	// of 90 MiB, which an add-on with large CRDs needs while it is applied, grows by 48 MiB instead of 180.
	maxGrowth = 48 << 20
)

// growthOf is the GOGC, in percent, for a number of live bytes: 200 up to 24 MiB, falling to 50 at 96 MiB, then
// rising towards Go's default of 100, so that collections do not follow one another.
func growthOf(live uint64) int {
	live = max(live, 1)
	return int(min(live*growth/100, max(maxGrowth, live-min(live, maxGrowth))) * 100 / live)
}

// paceCollections lets each collection set how much the heap may grow until the next one.
func paceCollections() {
	now := growth
	debug.SetGCPercent(now)
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	afterEachCollection(func() {
		metrics.Read(live)
		if next := growthOf(live[0].Value.Uint64()); next != now {
			now = next
			debug.SetGCPercent(now)
		}
	})
}

// afterEachCollection calls a function after each collection, by the finalizer of an unreferenced object.
func afterEachCollection(do func()) {
	type unreferenced [16]byte // smaller ones may share their memory, and are not finalized
	var finalize func(*unreferenced)
	finalize = func(*unreferenced) {
		do()
		runtime.SetFinalizer(&unreferenced{}, finalize)
	}
	runtime.SetFinalizer(&unreferenced{}, finalize)
}

// LimitMemory makes the garbage collector keep this process below its part of the container's memory, by flag
// --memory-limit: nine tenths of what other processes leave, but at least of a quarter of all. The rest is for memory
// that the collector does not see. Without the flag there is no limit. GOMEMLIMIT and GOGC of the environment take
// precedence.
func (f *Flags) LimitMemory(others int64) {
	if os.Getenv("GOGC") == "" {
		paceCollections()
	}
	if f.memory > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(share(f.memory, others))
	}
}

// CheckMemory refuses another process's limit above the container's, which the kernel would end.
func (f *Flags) CheckMemory(name string, most int64) error {
	if f.memory > 0 && most >= f.memory {
		return fmt.Errorf("flag --%s is %d bytes, and the container has %d (--memory-limit): give the container more memory, or lower the flag",
			name, most, f.memory)
	}
	return nil
}

func share(container, others int64) int64 {
	return max(container-others, container/4) / 10 * 9
}
