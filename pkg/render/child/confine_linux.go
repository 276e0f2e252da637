package child

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const (
	// dataSlack is address space that the Go runtime reserves for a growing heap without using it.
	dataSlack = 256 << 20
	// fieldData of /proc/self/statm is reserved data, in pages; terabytes with the race detector.
	fieldData = 5
	// descriptors of a child: its pipes, and those that the Go runtime opens.
	descriptors = 16
	// firstInLine is the highest score: the kernel kills children first when memory runs out.
	firstInLine = "1000"
)

// confine gives up all rights of the process that rendering does not need, before it reads foreign bytes.
func confine(given order) ready {
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte(firstInLine), 0); err != nil {
		return ready{Problem: "oom_score_adj can't be raised"}
	}
	own := openUsage(os.Getpid())
	reserved := own.fields(own.statm)
	own.close()
	if len(reserved) <= fieldData {
		return ready{Problem: "its memory can't be read"}
	}
	data := uint64(reserved[fieldData])*uint64(os.Getpagesize()) + uint64(given.Memory) + dataSlack
	limits := []struct {
		name     string
		resource int
		most     uint64
	}{
		{"RLIMIT_DATA", unix.RLIMIT_DATA, data},
		{"RLIMIT_CPU", unix.RLIMIT_CPU, given.CPU},
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
