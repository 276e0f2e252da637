package manager

import (
	"fmt"
	"os"
	"runtime/debug"
)

// growth is how much the heap may grow between two collections, in percent of what lives: twice Go's default. Half as many collections
// save a twentieth of a manager's processor time; what that costs is memory, and near the limit below it costs nothing.
const growth = 200

// LimitMemory has the garbage collector keep this process below its part of the container's memory, as flag --memory-limit
// tells it: nine tenths of what other processes of the container leave, but never less than a quarter of all. The rest is for
// what the collector does not see. Without the flag there is no limit. GOMEMLIMIT and GOGC of the environment come first.
func (f *Flags) LimitMemory(others int64) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(growth)
	}
	if f.memory > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(share(f.memory, others))
	}
}

// CheckMemory refuses a process beside this one that may take more than the container has: the kernel would end the container first.
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
