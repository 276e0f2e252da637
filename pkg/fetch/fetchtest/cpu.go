package fetchtest

import (
	"syscall"
	"testing"
	"time"
)

// CPUTime is this process's processor time so far, which other processes don't affect.
func CPUTime(t testing.TB) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
