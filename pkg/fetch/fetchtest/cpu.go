package fetchtest

import (
	"syscall"
	"testing"
	"time"
)

// CPUTime is what this process used of the processors so far. Unlike the clock on the wall it does not run while others
// have the machine.
func CPUTime(t testing.TB) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
