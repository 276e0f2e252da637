package manager

import (
	"fmt"
	"os"
	"runtime/debug"
)

// growth is how much the heap may grow between two collections, in percent of what lives: twice
// Go's default. That halves the time that collections take, and costs memory; below the limit there
// is enough of it, and near the limit the collector comes sooner anyway.
const growth = 200

// LimitMemory has the garbage collector keep this process below its part of the container's memory,
// by flag --memory-limit: nine tenths of what other processes leave, but at least of a quarter of
// all. The rest is for memory that the collector does not see. Without the flag there is no limit.
// GOMEMLIMIT and GOGC of the environment come first.
func (f *Flags) LimitMemory(others int64) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(growth)
	}
	if f.memory > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(share(f.memory, others))
	}
}

// CheckMemory refuses another process's limit above the container's, which the kernel would end.
func (f *Flags) CheckMemory(name string, most int64) error {
	if f.memory > 0 && most >= f.memory {
		return fmt.Errorf("flag --%s is %d bytes, and the container has %d (--memory-limit): give the container more, or the process less",
			name, most, f.memory)
	}
	return nil
}

func share(container, others int64) int64 {
	return max(container-others, container/4) / 10 * 9
}
