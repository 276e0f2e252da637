package child

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const (
	// dataSlack is what the Go runtime reserves without using it: the address space of a heap arena, and its tables.
	dataSlack = 256 << 20
	// descriptors that a child may have: its pipes, and what the Go runtime opens for itself.
	descriptors = 16
	// firstInLine is the highest score: when the machine has no memory left, the kernel ends children first.
	firstInLine = "1000"
)

// confine takes from the process what rendering does not need. It is called before anything foreign is read.
func confine(told order) ready {
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte(firstInLine), 0); err != nil {
		return ready{Problem: "oom_score_adj can't be raised"}
	}
	limits := []struct {
		name     string
		resource int
		most     uint64
	}{
		{"RLIMIT_DATA", unix.RLIMIT_DATA, uint64(told.Memory) + dataSlack},
		{"RLIMIT_CPU", unix.RLIMIT_CPU, told.CPU},
		{"RLIMIT_FSIZE", unix.RLIMIT_FSIZE, 0},
		{"RLIMIT_NOFILE", unix.RLIMIT_NOFILE, descriptors},
		{"RLIMIT_CORE", unix.RLIMIT_CORE, 0},
	}
	for _, limit := range limits {
		if err := unix.Setrlimit(limit.resource, &unix.Rlimit{Cur: limit.most, Max: limit.most}); err != nil {
			return ready{Problem: fmt.Sprintf("%s can't be set", limit.name)}
		}
	}
	return ready{Filtered: filterSystemCalls() == nil}
}
